"""What anybody on the machine, and anybody in the database, can see while it happens."""

import contextlib
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

_EVERY_S = 0.1
_QUERIES = "SELECT pid, query FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query <> ''"


class Watch:
    """Inside it, command lines of all processes and the statements of all sessions are looked at again and again.

    ``queries``: their texts, as pg_stat_activity shows them. ``command_lines``: process titles, those of PostgreSQL's
    own processes too.
    """

    def __init__(self, database_url: str) -> None:
        self.command_lines: set[bytes] = set()
        self.queries: set[str] = set()
        self.looks = 0
        self._url = database_url
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(10)

    def _run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._over.wait(_EVERY_S):
                self._look(connection)

    def _look(self, connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
        self.queries |= {query for _, query in connection.execute(_QUERIES).fetchall()}
        for process in Path("/proc").iterdir():
            if process.name.isdigit():
                # It may have ended between the two looks.
                with contextlib.suppress(OSError):
                    self.command_lines.add((process / "cmdline").read_bytes().replace(b"\0", b" "))
        self.looks += 1
