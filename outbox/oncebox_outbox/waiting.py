"""Waiting for an operation to settle: LISTEN for the word, and a poll behind it in case the word is lost."""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import psycopg
from sqlalchemy import Connection, Engine, text

from oncebox_models.tables import SETTLED_CHANNEL
from oncebox_outbox.errors import OperationNotFound
from oncebox_outbox.status import OperationStatus, find

POLL_S: Final = 1.0
"""Longest time between two looks while no word comes, in seconds."""


def wait(
    engine: Engine, operation_id: str, *, timeout_s: float, scope: Mapping[str, str | None]
) -> OperationStatus:
    """Look until the operation is settled or `timeout_s` has passed; returns the last look.

    Raises OperationNotFound when there is none at the first look.
    """
    end = time.monotonic() + timeout_s
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        # Listen before the first look: what settles in between is then announced.
        connection.execute(text(f"listen {SETTLED_CHANNEL}"))
        try:
            known = _look_until(connection, operation_id, end, scope)
        except BaseException:
            # It may be in the middle of something (Ctrl-C): it does not go back to a pool.
            connection.invalidate()
            raise
        # The connection goes back to a pool: nobody else wants these words.
        connection.execute(text(f"unlisten {SETTLED_CHANNEL}"))
        return known


def _look_until(
    connection: Connection, operation_id: str, end: float, scope: Mapping[str, str | None]
) -> OperationStatus:
    while True:
        found = find(connection, operation_id, **scope)
        if not found:
            raise OperationNotFound(operation_id)
        left_s = end - time.monotonic()
        if found[0].final or left_s <= 0:
            return found[0]
        _next_word(connection.connection.driver_connection, min(left_s, POLL_S))


def _next_word(driver_connection: object, timeout_s: float) -> None:
    if not isinstance(driver_connection, psycopg.Connection):
        raise TypeError(
            f"wait needs psycopg 3, got {type(driver_connection).__name__}; use postgresql+psycopg://"
        )
    # A connection that is lost here fails again at the next look, with the error that every other call raises.
    with suppress(psycopg.OperationalError):
        for _ in driver_connection.notifies(timeout=timeout_s, stop_after=1):
            return
