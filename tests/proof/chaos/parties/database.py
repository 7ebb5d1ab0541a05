"""A PostgreSQL server of the run's own that can be killed, paused and started again on the same data."""

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psycopg

from oncebox_operate.embedded import EmbeddedPostgres
from oncebox_operate.embedded.folder import processes_in

_SETTINGS: Final = {
    # The truth about a commit's time comes from the server alone.
    "track_commit_timestamp": "on",
    "max_wal_size": "128MB",
    "shared_buffers": "64MB",
    "log_min_messages": "warning",
}


class Database:
    """One server with one database in it. `url` and `address` (host:port) are the server itself, past every proxy."""

    def __init__(
        self, name: str, folder: Path, database: str, settings: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.url = self.address = ""
        self._database = database
        self._server = EmbeddedPostgres(folder, settings={**_SETTINGS, **(settings or {})})

    @property
    def log(self) -> Path:
        """What the server says, over all its starts."""
        return self._server.log

    def start(self) -> None:
        """Make the cluster, start it, make the database."""
        self._server.start()
        # Kept: the server has none while it is started again, and others ask for it then.
        self.url = self._server.ensure_database(self._database)
        self.address = f"127.0.0.1:{self._server.port}"

    def stop(self) -> None:
        self._server.stop(signal.SIGQUIT, seconds=10)

    def kill(self) -> None:
        """kill -9 of the server and of every child: as if the machine had lost power, but for its disk cache."""
        self._signal_all(signal.SIGKILL)

    def restart(self) -> None:
        """Start again on the same data and port after a kill; crash recovery runs."""
        self._server.restart()

    def pause(self) -> None:
        """SIGSTOP for every process of it. The system still takes connections for it."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def has_ended(self) -> bool:
        return self._server.exit_status() is not None

    def wait_until_it_answers(self, seconds: float) -> bool:
        """Until a new connection gets an answer."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return True
        return False

    def _signal_all(self, number: signal.Signals) -> None:
        # The postmaster first: it makes no more children then.
        cluster = self._server.data / "cluster"
        known: set[int] = set()
        pids = [self._server.pid]
        while new := [pid for pid in pids if pid not in known]:
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            known.update(new)
            pids = processes_in(cluster)
