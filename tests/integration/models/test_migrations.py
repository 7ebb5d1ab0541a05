"""The sender's schema: what migrations build is what the models say, and nothing else in a database is touched."""

import subprocess
import sys

import psycopg
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy.orm import Session

from oncebox_models.states import Reason, State, Wanted
from oncebox_models.tables import SCHEMA, metadata
from oncebox_operate import migrate
from oncebox_outbox import Intent, Outbox

CATALOG = """
    select 'constraint', conrelid::regclass::text, conname, concat_ws(' ', pg_get_constraintdef(oid), condeferrable, condeferred)
    from pg_constraint where connamespace = 'oncebox'::regnamespace and contype in ('c', 'f', 'p', 'u')
      and conrelid <> 'oncebox.alembic_version'::regclass
    union all
    select 'index', tablename::text, indexname, indexdef from pg_indexes
    where schemaname = 'oncebox' and tablename <> 'alembic_version'
    union all
    select 'column', c.attrelid::regclass::text, c.attname,
           concat_ws(' ', format_type(c.atttypid, c.atttypmod), c.attnotnull, c.attgenerated, c.attidentity,
                     pg_get_expr(d.adbin, d.adrelid))
    from pg_attribute c join pg_class t on t.oid = c.attrelid
    left join pg_attrdef d on d.adrelid = c.attrelid and d.adnum = c.attnum
    where t.relnamespace = 'oncebox'::regnamespace and t.relkind = 'r' and c.attnum > 0 and t.relname <> 'alembic_version'
    union all
    select 'storage', oid::regclass::text, '', array_to_string(reloptions, ' ') from pg_class
    where relnamespace = 'oncebox'::regnamespace and relkind = 'r' and relname <> 'alembic_version'
    union all
    select 'sequence', sequencename::text, '', data_type::text from pg_sequences where schemaname = 'oncebox'
    order by 1, 2, 3, 4"""


def _engine(url: str) -> sa.Engine:
    return sa.create_engine(migrate.sqlalchemy_url(url), poolclass=sa.NullPool)


def _catalog(connection: sa.Connection) -> list[tuple[object, ...]]:
    return [tuple(row) for row in connection.execute(sa.text(CATALOG))]


def test_alembic_finds_no_difference_between_models_and_migrations(sender_database: str) -> None:
    with _engine(sender_database).connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "include_schemas": True,
                "include_name": lambda name, kind, _parents: kind != "schema" or name == SCHEMA,
                "version_table_schema": SCHEMA,
                "compare_server_default": True,
            },
        )
        assert compare_metadata(context, metadata) == []


def test_the_catalog_of_the_migrations_is_that_of_the_models(
    sender_database: str, empty_database: str
) -> None:
    """Alembic compares neither checks, deferrability, computed columns nor storage settings."""
    with _engine(empty_database).begin() as connection:
        connection.execute(sa.text("create schema oncebox"))
        connection.execute(sa.text("create table oncebox.alembic_version (version_num text)"))
        metadata.create_all(connection)
        modelled = _catalog(connection)
    with _engine(sender_database).connect() as connection:
        assert _catalog(connection) == modelled


def test_the_closed_sets_of_the_code_are_those_of_the_checks(sender_database: str) -> None:
    with psycopg.connect(sender_database) as connection:
        checks = connection.execute(
            "select conname, pg_get_constraintdef(oid) from pg_constraint where contype = 'c'"
            " and connamespace = 'oncebox'::regnamespace"
        ).fetchall()
    written = dict(checks)
    for wanted in Wanted:
        assert f"'{wanted}'" in written["ck_outbox_entry_wanted"]
    for state in (State.SAVED, State.REFUSED, State.NOT_SAVED, State.NEEDS_REVIEW):
        assert f"'{state}'" in written["ck_operation_final"]
    assert f"'{Reason.ACCESS_LOST}'" in written["ck_outbox_entry_review"]


def test_up_down_up_ends_where_up_ends(sender_database: str) -> None:
    with _engine(sender_database).connect() as connection:
        first = _catalog(connection)
    migrate.down(sender_database)
    with psycopg.connect(sender_database) as connection:
        assert connection.execute(
            "select count(*) from pg_namespace where nspname = 'oncebox'"
        ).fetchone() == (0,)
        assert connection.execute("select count(*) from pg_proc where proname = 'wake_relay'").fetchone() == (
            0,
        )
    assert migrate.status(sender_database).current is None
    migrate.up(sender_database)
    with _engine(sender_database).connect() as connection:
        assert _catalog(connection) == first
    assert migrate.status(sender_database).up_to_date


def test_a_second_up_changes_nothing(sender_database: str) -> None:
    with _engine(sender_database).connect() as connection:
        first = _catalog(connection)
    migrate.up(sender_database)
    with _engine(sender_database).connect() as connection:
        assert _catalog(connection) == first


def test_two_ups_at_once_both_succeed(empty_database: str) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; from oncebox_operate import migrate; migrate.up(sys.argv[1])",
    ]
    running = [
        subprocess.Popen([*command, empty_database], stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    assert [(process.communicate(timeout=60)[1], process.returncode) for process in running] == [
        ("", 0),
        ("", 0),
    ]
    assert migrate.status(empty_database).up_to_date


def test_the_printed_sql_builds_the_same_schema(sender_database: str, empty_database: str) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(migrate.sql().encode())
    with _engine(empty_database).connect() as by_hand, _engine(sender_database).connect() as migrated:
        assert _catalog(by_hand) == _catalog(migrated)


CALLERS_OWN = """
    create table public.operation (id int primary key, note text);
    create table public.intent (id int primary key);
    create table public.alembic_version (version_num text primary key);
    create sequence public.ordering_seq;
    insert into public.operation values (1, 'mine');
    insert into public.intent values (2);
    insert into public.alembic_version values ('callers-revision')"""


def _callers_rows(connection: psycopg.Connection) -> list[object]:
    tables = connection.execute(
        "select table_name, column_name, data_type from information_schema.columns where table_schema = 'public'"
        " order by 1, 2"
    ).fetchall()
    rows = [
        connection.execute(f"select * from public.{table}".encode()).fetchall()
        for table in ("operation", "intent", "alembic_version", "ordering_seq")
    ]
    return [tables, rows]


def test_a_callers_own_tables_of_the_same_names_are_untouched(empty_database: str) -> None:
    """By up, by an enqueue in the same transaction as the caller's own rows, and by down."""
    with psycopg.connect(empty_database) as connection:
        connection.execute(CALLERS_OWN)
        before = _callers_rows(connection)
    migrate.up(empty_database)
    with _engine(empty_database).connect() as connection, Session(connection) as session, session.begin():
        Outbox("demo", "researcher").save_note(
            session,
            Intent("run-1", "step", "why"),
            operation_id="note-7",
            folder="drafts",
            title="t",
            text="t",
            ordering_key="k",
        )
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("select count(*) from oncebox.operation").fetchone() == (1,)
        assert _callers_rows(connection) == before
    migrate.down(empty_database)
    with psycopg.connect(empty_database) as connection:
        assert _callers_rows(connection) == before


def test_a_callers_search_path_does_not_lead_astray(empty_database: str) -> None:
    """Every name in our statements is qualified: public.operation first in the path is not taken for ours."""
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(CALLERS_OWN)
        connection.execute(
            "do $$ begin execute format('alter database %I set search_path = public', current_database()); end $$"
        )
    migrate.up(empty_database)
    with _engine(empty_database).begin() as connection:
        outbox = Outbox("demo", "researcher")
        outbox.save_note(
            connection, Intent("r", "s", "why"), operation_id="note-7", folder="drafts", title="t", text="t"
        )
        assert outbox.status(connection, "note-7").state is State.PENDING


def test_down_leaves_the_schema_when_something_else_is_in_it(sender_database: str) -> None:
    with psycopg.connect(sender_database, autocommit=True) as connection:
        connection.execute("create table oncebox.not_ours (id int)")
    migrate.down(sender_database)
    assert migrate.status(sender_database).current is None
