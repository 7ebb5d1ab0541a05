"""The one PostgreSQL of all runs, with databases to clone that have their tables already."""

import os
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, LiteralString

import psycopg
from psycopg import sql

from oncebox_operate.embedded import EmbeddedPostgres
from tests.support import databases

_BUILD: Final[Mapping[str, Callable[[str], None]]] = {
    "sender": databases.migrate_sender,
    "notes": databases.migrate_notes,
}
"""By the names that the fixtures of the tests use."""


@dataclass(frozen=True, slots=True)
class Databases:
    """url: of the server's database `postgres`. templates: names of databases, each with one party's tables."""

    url: str
    templates: Mapping[str, str]


@contextmanager
def running(folder: Path) -> Generator[Databases]:
    """The server that was given for tests, or one of our own in `folder`. Its templates are dropped afterwards."""
    with _server(folder) as url:
        prefix = f"oncebox_mutations_{secrets.token_hex(4)}"
        templates = {name: f"{prefix}_{name}" for name in _BUILD}
        try:
            for name, template in templates.items():
                _execute(url, "CREATE DATABASE {}", template)
                _BUILD[name](databases.with_database(url, template))
            yield Databases(url, templates)
        finally:
            for template in templates.values():
                _execute(url, "DROP DATABASE IF EXISTS {} WITH (FORCE)", template)


@contextmanager
def _server(folder: Path) -> Generator[str]:
    if given := os.environ.get(databases.GIVEN):
        yield given
        return
    with EmbeddedPostgres(folder, settings={"max_connections": "300"}) as server:
        yield server.url("postgres")


def _execute(url: str, statement: LiteralString, database: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(database)))
