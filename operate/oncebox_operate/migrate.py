"""Create, upgrade and inspect the sender's schema `oncebox`."""

from dataclasses import dataclass
from io import StringIO

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from oncebox_models.tables import SCHEMA


@dataclass(frozen=True, slots=True)
class Status:
    """Where a database stands: its revision (None: no tables yet) and the one this code wants."""

    current: str | None
    head: str

    @property
    def up_to_date(self) -> bool:
        return self.current == self.head


def up(url: str) -> None:
    """Bring the database at `url` to this code's revision. Safe to run twice and by two processes at once."""
    engine = sa.create_engine(sqlalchemy_url(url))
    try:
        with engine.begin() as connection:
            command.upgrade(_config(connection), "head")
    finally:
        engine.dispose()


def down(url: str) -> None:
    """Remove all tables of the schema, with what is in them, and the schema if nothing else is in it."""
    engine = sa.create_engine(sqlalchemy_url(url))
    try:
        with engine.begin() as connection:
            command.downgrade(_config(connection), "base")
            connection.execute(sa.text(f"drop table if exists {SCHEMA}.alembic_version"))
            left = sa.text(
                "select from pg_depend d join pg_namespace n on n.oid = d.refobjid"
                " where d.refclassid = 'pg_namespace'::regclass and n.nspname = :schema limit 1"
            )
            if connection.execute(left, {"schema": SCHEMA}).first() is None:
                connection.execute(sa.text(f"drop schema if exists {SCHEMA}"))
    finally:
        engine.dispose()


def status(url: str) -> Status:
    """Read the database's revision; changes nothing."""
    engine = sa.create_engine(sqlalchemy_url(url))
    try:
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"version_table_schema": SCHEMA})
            current = context.get_current_revision() if sa.inspect(connection).has_schema(SCHEMA) else None
    finally:
        engine.dispose()
    return Status(current, head())


def head() -> str:
    """The revision that this code wants."""
    newest = ScriptDirectory.from_config(_config(None)).get_current_head()
    if newest is None:
        raise RuntimeError("this installation carries no migrations; install oncebox again")
    return newest


def sql() -> str:
    """The SQL of a first `up`, for a person who applies it by hand."""
    printed = StringIO()
    config = _config(None)
    config.output_buffer = printed
    command.upgrade(config, "head", sql=True)
    return printed.getvalue()


def sqlalchemy_url(url: str) -> sa.URL:
    """A libpq-style URL as one for SQLAlchemy with psycopg 3."""
    return sa.make_url(url).set(drivername="postgresql+psycopg")


def _config(connection: sa.Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", "oncebox_models:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
