"""The schema of the service's database, moved between revisions. The files are in `migrations/`."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy.exc import DBAPIError

HEAD: Final = "0001"
"""The revision that this version of the service works with."""

_ONE_AT_A_TIME: Final = sa.text("SELECT pg_advisory_xact_lock(hashtextextended('migrate', 0))")


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The revision of a database (none: empty) and the one that is needed."""

    revision: str | None
    head: str

    @property
    def current(self) -> bool:
        return self.revision == self.head


def up(database_url: str) -> SchemaStatus:
    """To the newest revision; two callers at once take turns."""
    with _connected(database_url) as connection:
        command.upgrade(_config(connection), "head")
        return _status(connection)


def down(database_url: str) -> SchemaStatus:
    """One revision back. Tables that go lose their rows."""
    with _connected(database_url) as connection:
        command.downgrade(_config(connection), "-1")
        return _status(connection)


def status(database_url: str) -> SchemaStatus:
    with _connected(database_url) as connection:
        return _status(connection)


def _status(connection: sa.Connection) -> SchemaStatus:
    return SchemaStatus(MigrationContext.configure(connection).get_current_revision(), HEAD)


@contextmanager
def _connected(database_url: str) -> Generator[sa.Connection]:
    """Raises psycopg's errors, as every other access to the database does."""
    engine = sa.create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(database_url), poolclass=sa.NullPool
    )
    try:
        with engine.begin() as connection:
            connection.execute(_ONE_AT_A_TIME)
            yield connection
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.Error):
            raise error.orig from error
        raise


def _config(connection: sa.Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config
