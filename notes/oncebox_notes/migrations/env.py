"""Run by Alembic: it migrates on the connection that `migrating` hands over."""

from alembic import context

from oncebox_notes.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection, target_metadata=metadata, compare_type=True, compare_server_default=True
)
with context.begin_transaction():
    context.run_migrations()
