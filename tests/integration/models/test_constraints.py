"""Wrong rows are impossible: each constraint refuses the row it is there for."""

from collections.abc import Generator

import psycopg
import pytest
from psycopg.errors import CheckViolation, ForeignKeyViolation, NotNullViolation, UniqueViolation

from tests.support import databases
from tests.support.databases import DatabaseServer

INTENT = "00000000-0000-0000-0000-00000000000a"
OPERATION = "00000000-0000-0000-0000-00000000000b"
OTHER = "00000000-0000-0000-0000-00000000000c"
CALL = "00000000-0000-0000-0000-00000000000d"
HASH = "a" * 64

Columns = dict[str, object]

INTENT_ROW: Columns = {
    "id": INTENT, "tenant": "demo", "principal": "p", "run": "r", "step": "s", "purpose": "why",
}  # fmt: skip
OPERATION_ROW: Columns = {
    "id": OPERATION, "tenant": "demo", "principal": "p", "destination": "notes", "operation_id": "note-7",
    "intent_id": INTENT, "kind": "note.create", "arguments": "{}", "args_hash": HASH, "deadline": "2999-01-01Z",
}  # fmt: skip
SETTLED: Columns = {"final": "not_saved", "reason": "cancelled", "settled_at": "2026-01-01Z"}
SAVED: Columns = {"final": "saved", "receipt": "{}", "settled_at": "2026-01-01Z"}
ENTRY_ROW: Columns = {"id": OPERATION, "destination": "notes", "deadline": "2999-01-01Z"}
LEASE: Columns = {"call_id": CALL, "calling": "send", "lease_until": "2999-01-01Z"}
CALL_ROW: Columns = {
    "call_id": CALL, "kind": "send", "destination": "notes", "worker": "w", "operations": 1,
}  # fmt: skip

Database = psycopg.Connection


@pytest.fixture(scope="module")
def module_database(database_server: DatabaseServer, postgres_url: str) -> Generator[str]:
    with database_server.clone(database_server.template("sender", databases.migrate_sender)) as url:
        yield url


@pytest.fixture
def database(module_database: str) -> Generator[Database]:
    """A transaction with one intent and one live operation without its entry; rolled back afterwards."""
    with psycopg.connect(module_database) as connection:
        _insert(connection, "intent", INTENT_ROW)
        _insert(connection, "operation", OPERATION_ROW)
        yield connection
        connection.rollback()


def _insert(connection: Database, table: str, row: Columns) -> None:
    columns, places = ", ".join(row), ", ".join(["%s"] * len(row))
    connection.execute(
        f"insert into oncebox.{table} ({columns}) values ({places})".encode(), list(row.values())
    )


def _update(connection: Database, table: str, changes: Columns) -> None:
    assignments = ", ".join(f"{column} = %s" for column in changes)
    connection.execute(f"update oncebox.{table} set {assignments}".encode(), list(changes.values()))


def test_the_rows_that_all_these_tests_start_from_are_right(database: Database) -> None:
    _insert(database, "outbox_entry", ENTRY_ROW | LEASE)
    _insert(database, "call", CALL_ROW)
    _insert(
        database,
        "call_outcome",
        {"id": OPERATION, "call_id": CALL, "outcome": "unknown", "reason": "timeout"},
    )
    database.execute("set constraints all immediate")
    assert database.execute("select live from oncebox.operation").fetchone() == (True,)


def test_a_settled_operation_with_a_live_entry_fails_at_commit(module_database: str) -> None:
    with psycopg.connect(module_database) as connection:
        _insert(connection, "intent", INTENT_ROW)
        _insert(connection, "operation", OPERATION_ROW)
        _insert(connection, "outbox_entry", ENTRY_ROW)
        _update(
            connection, "operation", SETTLED
        )  # not before the commit: settle changes both in one statement
        with pytest.raises(ForeignKeyViolation, match="fk_outbox_entry_live"):
            connection.commit()
        assert connection.execute("select count(*) from oncebox.operation").fetchone() == (0,)


def test_an_entry_without_its_operation_fails_at_commit(database: Database) -> None:
    _insert(database, "outbox_entry", ENTRY_ROW | {"id": OTHER})
    with pytest.raises(ForeignKeyViolation, match="fk_outbox_entry_live"):
        database.commit()


WRONG_OPERATIONS = [
    pytest.param({"operation_id": ""}, "operation_id", id="blank id F7"),
    pytest.param({"operation_id": " "}, "operation_id", id="space id F7"),
    pytest.param({"operation_id": "\u200b"}, "operation_id", id="invisible id F7"),
    pytest.param({"operation_id": "note-7\n"}, "operation_id", id="id ends in a new line"),
    pytest.param({"operation_id": "a\nnote-7"}, "operation_id", id="id of two lines"),
    pytest.param({"operation_id": "x" * 129}, "operation_id", id="id of 129 characters"),
    pytest.param({"operation_id": "-note"}, "operation_id", id="id begins with a dash"),
    pytest.param({"args_hash": "A" * 64}, "args_hash", id="hash in capitals"),
    pytest.param({"args_hash": "a" * 63}, "args_hash", id="short hash"),
    pytest.param(SETTLED | {"final": "unknown"}, "final", id="a live state as the end"),
    pytest.param(SETTLED | {"settled_at": None}, "settled_at", id="settled at no time"),
    pytest.param({"settled_at": "2026-01-01Z"}, "settled_at", id="live with a time of settling"),
    pytest.param(SAVED | {"receipt": None}, "receipt", id="saved without a receipt"),
    pytest.param({"receipt": "{}"}, "receipt", id="live with a receipt"),
    pytest.param(SETTLED | {"receipt": "{}"}, "receipt", id="not saved with a receipt"),
    pytest.param(SETTLED | {"reason": None}, "reason", id="not saved without a reason"),
    pytest.param({"arguments": None}, "arguments", id="live without arguments"),
]


@pytest.mark.parametrize(("changes", "constraint"), WRONG_OPERATIONS)
def test_a_wrong_operation_is_refused(database: Database, changes: Columns, constraint: str) -> None:
    with pytest.raises(CheckViolation, match=f"ck_operation_{constraint}"):
        _update(database, "operation", changes)


@pytest.mark.parametrize(
    "changes", [SETTLED, SAVED, SAVED | {"arguments": None}, {"operation_id": "x" * 128}]
)
def test_a_right_operation_is_accepted(database: Database, changes: Columns) -> None:
    _update(database, "operation", changes)
    row = database.execute("select live, final is null from oncebox.operation").fetchone()
    assert row is not None
    assert row[0] == row[1]


def test_live_cannot_be_told_otherwise(database: Database) -> None:
    with pytest.raises(psycopg.errors.GeneratedAlways):
        _update(database, "operation", {"live": False})


@pytest.mark.parametrize(
    "column",
    ["intent_id", "tenant", "principal", "destination", "operation_id", "kind", "args_hash", "deadline"],
)
def test_an_operation_has_its_identity_and_deadline(database: Database, column: str) -> None:
    with pytest.raises(NotNullViolation):
        _update(database, "operation", {column: None})


def test_an_identity_exists_once(database: Database) -> None:
    with pytest.raises(UniqueViolation, match="uq_operation_identity"):
        _insert(database, "operation", OPERATION_ROW | {"id": OTHER})


@pytest.mark.parametrize("other", ["tenant", "principal", "destination"])
def test_another_party_has_its_own_identities(database: Database, other: str) -> None:
    """R38, R39: the key of one tenant or principal is not in the way of another's."""
    _insert(database, "operation", OPERATION_ROW | {"id": OTHER, other: "another"})
    assert database.execute("select count(*) from oncebox.operation").fetchone() == (2,)


def test_an_operation_supersedes_an_existing_one(database: Database) -> None:
    with pytest.raises(ForeignKeyViolation, match="fk_operation_supersedes"):
        _update(database, "operation", {"supersedes": OTHER})


def test_an_operation_has_an_existing_intent(database: Database) -> None:
    with pytest.raises(ForeignKeyViolation, match="fk_operation_intent_id"):
        _update(database, "operation", {"intent_id": OTHER})


def test_a_place_in_the_work_has_one_intent(database: Database) -> None:
    with pytest.raises(UniqueViolation, match="uq_intent"):
        _insert(database, "intent", INTENT_ROW | {"id": OTHER})


WRONG_ENTRIES = [
    pytest.param({"call_id": CALL}, "lease", id="half a lease: no end"),
    pytest.param({"lease_until": "2999-01-01Z"}, "lease", id="half a lease: no call"),
    pytest.param({"ordering_key": "k"}, "ordering", id="a key without a sequence"),
    pytest.param({"ordering_seq": 1}, "ordering", id="a sequence without a key"),
    pytest.param({"claims": -1}, "counts", id="negative claims"),
    pytest.param({"retries": -1}, "counts", id="negative retries"),
    pytest.param({"attempts": -1, "unanswered": -1}, "counts", id="negative unanswered"),
    pytest.param({"unanswered": 1}, "counts", id="more unanswered than attempts"),
    pytest.param({"next_call": "verify"}, "next_call", id="an unknown next call"),
    pytest.param({"wanted": "forget", "wanted_reason": "x", "next_call": "seal"}, "wanted", id="an unknown wish"),
    pytest.param({"next_call": "seal"}, "only_sealed", id="deliver by sealing"),
    pytest.param({"wanted": "abandon", "wanted_reason": "x"}, "only_sealed", id="abandon by sending"),
    pytest.param({"wanted": "refuse", "wanted_reason": "x", "next_call": "status"}, "only_sealed", id="refuse by asking"),
    pytest.param({"wanted": "abandon", "next_call": "seal"}, "wanted_reason", id="abandon for no reason"),
    pytest.param({"wanted_reason": "x"}, "wanted_reason", id="deliver with a reason"),
    pytest.param({"review": "tired"}, "review", id="an unknown review"),
    pytest.param({"live": False}, "live", id="an entry that is not live"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "constraint"), WRONG_ENTRIES)
def test_a_wrong_entry_is_refused(database: Database, changes: Columns, constraint: str) -> None:
    with pytest.raises(CheckViolation, match=f"ck_outbox_entry_{constraint}"):
        _insert(database, "outbox_entry", ENTRY_ROW | changes)


@pytest.mark.parametrize(
    "changes",
    [
        LEASE,
        {"ordering_key": "k", "ordering_seq": 1},
        {"wanted": "refuse", "wanted_reason": "x", "next_call": "seal", "attempts": 1},
        {"review": "access_lost"},
    ],
)
def test_a_right_entry_is_accepted(database: Database, changes: Columns) -> None:
    _insert(database, "outbox_entry", ENTRY_ROW | changes)
    assert database.execute("select count(*) from oncebox.outbox_entry").fetchone() == (1,)


@pytest.mark.parametrize(
    ("table", "row", "constraint"),
    [
        ("destination", {"name": "d", "class": "D"}, "ck_destination_class"),
        ("destination", {"name": "d", "capabilities": "{}"}, "ck_destination_capabilities_seen"),
        (
            "destination",
            {"name": "d", "capabilities_seen_at": "2026-01-01Z"},
            "ck_destination_capabilities_seen",
        ),
        ("call", CALL_ROW | {"kind": "probe"}, "ck_call_kind"),
        ("call", CALL_ROW | {"operations": 0}, "ck_call_operations"),
    ],
)
def test_a_wrong_destination_or_call_is_refused(
    database: Database, table: str, row: Columns, constraint: str
) -> None:
    with pytest.raises(CheckViolation, match=constraint):
        _insert(database, table, row)


def test_a_receiver_belongs_to_one_destination(database: Database) -> None:
    _update(database, "destination", {"receiver": "receiver-1"})
    with pytest.raises(UniqueViolation, match="uq_destination_receiver"):
        _insert(database, "destination", {"name": "again", "receiver": "receiver-1"})


@pytest.mark.parametrize(
    ("row", "constraint"),
    [({"id": OPERATION, "call_id": OTHER}, "call_id"), ({"id": OTHER, "call_id": CALL}, "id")],
)
def test_an_outcome_has_its_operation_and_call(database: Database, row: Columns, constraint: str) -> None:
    _insert(database, "call", CALL_ROW)
    with pytest.raises(ForeignKeyViolation, match=f"fk_call_outcome_{constraint}"):
        _insert(database, "call_outcome", row | {"outcome": "unknown", "reason": "timeout"})


def test_a_violation_is_about_an_existing_operation(database: Database) -> None:
    with pytest.raises(ForeignKeyViolation, match="fk_violation_id"):
        _insert(database, "violation", {"kind": "x", "id": OTHER, "detail": "{}"})
