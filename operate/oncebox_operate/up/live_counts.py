"""The four numbers of the live line, read from the sender's database."""

import time
from dataclasses import dataclass
from typing import Final

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from oncebox_outbox import insights
from oncebox_outbox.engine import worker_engine
from oncebox_outbox.errors import OutboxError

_SAVED: Final = text("/* oncebox:up_saved */ select count(*) from oncebox.operation where final = 'saved'")
_REST_FACTOR: Final = 50.0
"""Counting what is saved costs as much as the history is long: it may take a fiftieth of the time, no more."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Open operations, those of unknown outcome among them, the age of the oldest in seconds, and saved ones."""

    open: int
    unknown: int
    oldest_s: float
    saved: int


class LiveCounts:
    """Reads over one connection of its own. Used by one thread."""

    def __init__(self, database_url: str) -> None:
        self._engine = worker_engine(database_url, pool_size=1, application="oncebox up")
        self._saved = 0
        self._count_saved_at = 0.0

    def look(self) -> Counts | None:
        """None while the database does not answer."""
        try:
            with self._engine.connect() as connection:
                lag = insights.lag(connection)
                if (began := time.monotonic()) >= self._count_saved_at:
                    self._saved = connection.execute(_SAVED).scalar_one()
                    ended = time.monotonic()
                    self._count_saved_at = ended + _REST_FACTOR * (ended - began)
        except (SQLAlchemyError, OutboxError):
            return None
        return Counts(lag.entries, lag.unknown, lag.oldest_age_s, self._saved)

    def close(self) -> None:
        self._engine.dispose()
