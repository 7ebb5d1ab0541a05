"""The end of tombstones: when no packet with their key can be admitted any more."""

from datetime import timedelta
from typing import Any, Final

import psycopg

from oncebox_notes import statements
from oncebox_notes.identity import Identity
from oncebox_notes.operations import Key, key_columns
from oncebox_notes.settings import TOMBSTONE_MARGIN_SECONDS

_BATCH: Final = 1000


def purge_tombstones(
    connection: psycopg.Connection[tuple[Any, ...]], admission_window_seconds: int
) -> int | None:
    """How many tombstones went, in transactions of a bounded size; none when another purge is running.

    `connection` must be in autocommit mode. A key that is in use at this moment is left for the next time.
    """
    if connection.execute(statements.PURGE_LOCK_TRY).fetchall() != [(True,)]:
        return None
    spans = {
        "window": timedelta(seconds=admission_window_seconds),
        "margin": timedelta(seconds=TOMBSTONE_MARGIN_SECONDS),
    }
    purged = 0
    while True:
        gone = _purge_some(connection, spans)
        purged += gone
        if not gone:
            return purged


def _purge_some(connection: psycopg.Connection[tuple[Any, ...]], spans: dict[str, timedelta]) -> int:
    with connection.transaction():
        rows = connection.execute(statements.PURGE_CANDIDATES, {**spans, "limit": _BATCH}).fetchall()
        keys = [Key(Identity(tenant, principal), key) for tenant, principal, key in rows]
        locks = connection.execute(statements.KEY_LOCK_TRY, key_columns(keys)).fetchall()
        free: list[Key] = [keys[position - 1] for position, locked in locks if locked]
        return connection.execute(statements.PURGE, {**key_columns(free), **spans}).rowcount
