"""A database of its own for each test, cloned from a template that has its tables.

The server is the one at ONCEBOX_TEST_DATABASE_URL, else an embedded one. All processes of a test
session (pytest-xdist) share it and the templates, through a file lock in the session's folder.
"""

import contextlib
import fcntl
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from tests.support.polling import eventually

ROOT = Path(__file__).parents[2]
GIVEN = "ONCEBOX_TEST_DATABASE_URL"


class DatabaseServer:
    """``folder`` is shared by the session's processes; ``pytest_pid`` is the one that ends last."""

    def __init__(self, folder: Path, *, pytest_pid: int) -> None:
        self._folder = folder
        self._pytest_pid = pytest_pid
        self._state: dict[str, Any] = {}

    @property
    def url(self) -> str:
        """The address of its database ``postgres``, as a user who may create databases."""
        if not self._state:
            with self._shared_state() as state:
                if not state:
                    state["url"] = os.environ.get(GIVEN) or self._start()
                    state["prefix"] = f"oncebox_test_{secrets.token_hex(4)}"
                    state["templates"] = []
                self._state = dict(state)
        return str(self._state["url"])

    def template(self, name: str, build: Callable[[str], None]) -> str:
        """The name of a database that ``build(url)`` has filled, once a session."""
        url, database = self.url, f"{self._state['prefix']}_{name}"
        with self._shared_state() as state:
            if name not in state["templates"]:
                _execute(url, "DROP DATABASE IF EXISTS {} WITH (FORCE)", database)
                _execute(url, "CREATE DATABASE {}", database)
                build(with_database(url, database))
                state["templates"].append(name)
        return database

    @contextlib.contextmanager
    def clone(self, template: str) -> Generator[str, None, None]:
        """The URL of a fresh copy of the template; dropped afterwards, whoever is still connected."""
        url, database = self.url, f"{template}_{secrets.token_hex(4)}"
        _execute(url, "CREATE DATABASE {} TEMPLATE {} STRATEGY wal_log", database, template)
        try:
            yield with_database(url, database)
        finally:
            _execute(url, "DROP DATABASE {} WITH (FORCE)", database)

    @contextlib.contextmanager
    def empty(self) -> Generator[str, None, None]:
        """The URL of a fresh database without tables."""
        url, database = self.url, f"{self._prefix}_{secrets.token_hex(4)}"
        _execute(url, "CREATE DATABASE {} TEMPLATE template0", database)
        try:
            yield with_database(url, database)
        finally:
            _execute(url, "DROP DATABASE {} WITH (FORCE)", database)

    def clean_up(self) -> None:
        """After the session: a server that is not ours keeps nothing of it."""
        with self._shared_state() as state:
            if state:
                with psycopg.connect(state["url"], autocommit=True) as connection:
                    left = connection.execute(
                        "SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [state["prefix"]]
                    ).fetchall()
                for (database,) in left:
                    _execute(state["url"], "DROP DATABASE IF EXISTS {} WITH (FORCE)", database)

    @property
    def _prefix(self) -> str:
        return str(self._state["prefix"])

    def _start(self) -> str:
        folder = self._folder / "postgres"
        folder.mkdir()
        log = self._folder / "postgres_holder.log"
        with log.open("wb") as output:
            holder = subprocess.Popen(
                [sys.executable, "-m", "tests.support.postgres_holder", folder, str(self._pytest_pid)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=ROOT,
                start_new_session=True,
            )

        def address() -> str | None:
            if holder.poll() is not None:
                raise RuntimeError(f"the tests' PostgreSQL did not start:\n{log.read_text(encoding='utf-8')}")
            file = folder / "url"
            return file.read_text(encoding="utf-8") if file.exists() else None

        url = eventually(address, timeout=60, what=f"the tests' PostgreSQL is ready; see {log}")
        # It ends after us; Popen must not complain that it still runs.
        holder.returncode = 0
        assert url is not None
        return url

    @contextlib.contextmanager
    def _shared_state(self) -> Generator[dict[str, Any], None, None]:
        file = self._folder / "databases.json"
        with (self._folder / "databases.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
            yield state
            file.write_text(json.dumps(state), encoding="utf-8")


def migrate_sender(url: str) -> None:
    """Give a database the sender's tables."""
    from oncebox_operate import migrate

    migrate.up(url)


def migrate_notes(url: str) -> None:
    """Give a database the note service's tables, the way its operator does: it shares no code with us."""
    done = subprocess.run(
        [sys.executable, "-m", "oncebox_notes", "migrate", "up"],
        env={**os.environ, "ONCEBOX_NOTES_DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(
            f"python -m oncebox_notes migrate up: exit {done.returncode}\n{done.stdout}{done.stderr}"
        )


def with_database(url: str, database: str) -> str:
    """The same server, another database."""
    return urlunsplit(urlsplit(url)._replace(path="/" + quote(database, safe="")))


def _execute(url: str, statement: str, *names: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))  # pyright: ignore[reportArgumentType] constant statements of this module
