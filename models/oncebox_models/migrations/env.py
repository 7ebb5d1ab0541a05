"""Alembic's entry: runs on the connection it is handed, or prints SQL. Keeps to the schema `oncebox`."""

from alembic import context
from sqlalchemy import Connection, text

from oncebox_models.tables import SCHEMA, metadata


def _run(connection: Connection) -> None:
    # Two `migrate up` at once: the second waits, then finds nothing to do. Held to the end of the transaction.
    connection.execute(text("select pg_advisory_xact_lock(7070316)"))
    connection.execute(text(f"create schema if not exists {SCHEMA}"))
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table_schema=SCHEMA,
        include_schemas=True,
        include_name=lambda name, kind, _parents: kind != "schema" or name == SCHEMA,
        compare_server_default=True,
    )
    context.run_migrations()


def _print() -> None:
    context.configure(
        dialect_name="postgresql", target_metadata=metadata, version_table_schema=SCHEMA, literal_binds=True
    )
    context.execute(f"create schema if not exists {SCHEMA}")
    context.run_migrations()


if context.is_offline_mode():
    _print()
else:
    _run(context.config.attributes["connection"])
