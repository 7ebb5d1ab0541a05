"""The sender's migrations (Alembic). Run by `oncebox migrate`."""
