"""The tables: as the migrations make them, and impossible to fill wrongly."""

from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from oncebox_notes import migrating
from oncebox_notes.tables import metadata


def engine_for(url: str) -> sa.Engine:
    return sa.create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=sa.NullPool
    )


def test_the_migrations_make_the_tables_of_the_model(notes_database: str) -> None:
    with engine_for(notes_database).connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, metadata) == []


def test_the_checks_of_the_migrations_are_those_of_the_model(
    notes_database: str, empty_database: str
) -> None:
    """Alembic compares no CHECK and no index condition; PostgreSQL's own description does."""
    query = sa.text(
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> 'alembic_version'"
        " UNION ALL SELECT tablename, indexname, indexdef FROM pg_indexes"
        " WHERE schemaname = 'public' AND tablename <> 'alembic_version' ORDER BY 1, 2, 3"
    )
    described: list[list[Any]] = []
    with engine_for(empty_database).begin() as connection:
        metadata.create_all(connection)
    for url in (notes_database, empty_database):
        with engine_for(url).connect() as connection:
            described.append(list(connection.execute(query)))
    assert described[0] == described[1]


def test_migrations_go_down_and_up_again(notes_database: str) -> None:
    assert not migrating.down(notes_database).current
    assert migrating.up(notes_database).current
    assert migrating.status(notes_database).current


def test_the_head_is_the_newest_file() -> None:
    package = migrating.__file__.rsplit("/", 1)[0]
    assert ScriptDirectory(f"{package}/migrations").get_current_head() == migrating.HEAD


NOTE = "'00000000-0000-7000-8000-000000000001'"
HASH = "repeat('0', 64)"
VERSION = "INSERT INTO note_version (note_id, version, tenant, principal, operation_key, folder, title, text, format, etag, args_hash, token_id, grant_id, created_at) VALUES"


@pytest.mark.parametrize(
    "wrong",
    [
        "INSERT INTO operation_record (tenant, principal, key, state, created_at) VALUES ('t','p','k','completed', now())",
        "INSERT INTO operation_record (tenant, principal, key, state, created_at) VALUES ('t','p','k','sealed', now())",
        "INSERT INTO operation_record (tenant, principal, key, state, created_at, deadline) VALUES ('t','p','k','pending', now(), now())",
        f"INSERT INTO operation_record (tenant, principal, key, state, note_id, created_at, deadline) VALUES ('t','p','k','sealed', {NOTE}, now(), now())",
        "INSERT INTO receiver DEFAULT VALUES",
        "INSERT INTO receiver (singleton) VALUES (false)",
        "INSERT INTO folder_grant (tenant, principal, folder_id) SELECT 'other', 'p', id FROM folder",
        "INSERT INTO folder_grant (tenant, principal, folder_id) SELECT 't', 'p', id FROM folder, generate_series(1, 2)",
        "INSERT INTO folder_grant (tenant, principal, folder_id, revoked_at) SELECT 't', 'p', id, now() - interval '1 day' FROM folder",
        f"INSERT INTO note (id, tenant, folder_id, version, created_at) SELECT {NOTE}, 'other', id, 1, now() FROM folder",
        f"{VERSION} ({NOTE}, 1, 't', 'p', 'k', 'f', 'a', 'b', 'plain', 'e', {HASH}, 'x', 1, now())",
        f"{VERSION} ('00000000-0000-7000-8000-000000000000', 2, 't', 'p', 'k', 'f', 'a', 'b', 'plain', 'e', {HASH}, 'x', 1, now())",
        f"{VERSION} ('00000000-0000-7000-8000-000000000000', 2, 't', 'p', 'k2', 'f', 'a', 'b', 'html', 'e', {HASH}, 'x', 1, now())",
        "INSERT INTO token (id, tenant, principal, delegate, tenants, secret_hash) VALUES ('i','t','p', true, '{}', decode(repeat('00', 32), 'hex'))",
        "INSERT INTO token (id, tenant, principal, delegate, tenants, secret_hash) VALUES ('i','t','p', false, '{}', 'short')",
    ],
)  # fmt: skip
def test_a_wrong_row_is_impossible(notes_database: str, wrong: Any) -> None:
    """Half a record, a second receiver, a grant or note across tenants, a second version of one operation."""
    with psycopg.connect(notes_database, autocommit=True) as connection:
        connection.execute("INSERT INTO folder (tenant, path) VALUES ('t', 'f')")
        connection.execute(
            "INSERT INTO note (id, tenant, folder_id, version, created_at)"
            " SELECT '00000000-0000-7000-8000-000000000000', 't', id, 1, now() FROM folder"
        )
        connection.execute(
            VERSION
            + f" ('00000000-0000-7000-8000-000000000000', 1, 't', 'p', 'k', 'f', 'a', 'b', 'plain', 'e', {HASH}, 'x', 1, now())"
        )
        with pytest.raises(psycopg.IntegrityError):
            connection.execute(wrong)
