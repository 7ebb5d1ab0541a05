"""When the relay looks again: at once while there is work, soon after a wake-up, else at the idle poll."""

from collections.abc import Iterator
from typing import Final

import psycopg
from sqlalchemy import URL, make_url

from oncebox_models.tables import WAKE_CHANNEL

# A transaction that commits while another's wake-up is on its way stays silent (the try-lock): it is found by these.
AFTER_WAKE_S: Final = (0.005, 0.02, 0.05)
"""Pauses before the looks that follow a wake-up or a find."""


class Wakeup:
    """Waits for the word that entries were committed. The word may be lost: callers bound every wait."""

    def __init__(self, url: str | URL) -> None:
        self._url: Final = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._connection: psycopg.Connection | None = None

    def wait(self, timeout_s: float) -> bool:
        """True as soon as the word comes, False after `timeout_s`. Raises psycopg.OperationalError."""
        try:
            if self._connection is None:
                self._connection = psycopg.connect(
                    self._url, autocommit=True, connect_timeout=5, application_name="oncebox relay wake-up"
                )
                self._connection.execute(f"listen {WAKE_CHANNEL}")
                # What was committed before we listened is found by the look that follows.
                return True
            return any(True for _ in self._connection.notifies(timeout=timeout_s, stop_after=1))
        except psycopg.OperationalError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; the next wait makes a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def pauses() -> Iterator[float]:
    """The pauses between looks after something happened; ends when the relay may sleep."""
    return iter(AFTER_WAKE_S)
