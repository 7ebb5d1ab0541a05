"""`oncebox verify`: a planted wrong of each kind makes it exit 8 and name the operation."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import pytest

from oncebox_models.outcomes import Outcome
from oncebox_operate import note_process, verification
from oncebox_operate.database_failures import Server
from oncebox_operate.ledger import Counted, Key, NotesLedger
from oncebox_outbox import Outbox
from tests.integration.operate.conftest import ONCEBOX, Oncebox
from tests.integration.operate.delivery import deliver
from tests.integration.outbox import scenes
from tests.integration.outbox.scenes import Sender, write
from tests.support import databases
from tests.support.databases import DatabaseServer
from tests.support.processes import Processes

TRICKY = '3:markdown 珊瑚 é \\u0041 "quoted" \t\n\x1f\U0001f41f'


@dataclass(frozen=True, slots=True)
class Delivered:
    """Two databases after a delivery, of which each test gets copies."""

    sender: str
    notes: str
    token: str
    ids: list[UUID]


@pytest.fixture(scope="module")
def delivered(
    database_server: DatabaseServer, postgres_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Delivered]:
    """Three saved notes, note-0 with a text that is hard to compare; and note-3, which was refused."""
    with (
        database_server.clone(database_server.template("sender", databases.migrate_sender)) as sender_url,
        database_server.clone(database_server.template("notes", databases.migrate_notes)) as notes_url,
    ):
        folder = tmp_path_factory.mktemp("delivered")
        token = administer(
            notes_url, "token create --tenant demo --principal worker --delegate --tenants demo"
        )["token"]
        administer(notes_url, "grant add --tenant demo --principal researcher --folder drafts")
        with scenes.sender(sender_url) as sender, serving(folder, notes_url) as service:
            ids = sender.enqueue(
                *(write(f"note-{n}", text=text) for n, text in enumerate((TRICKY, "Reef B", "Reef C")))
            )
            deliver(sender, service, str(token), *(one.id for one in ids))
            refused = sender.enqueue(write("note-3"), outbox=Outbox("demo", "stranger"))
            for _ in ("send", "seal"):
                deliver(sender, service, str(token), refused[0].id)
        yield Delivered(
            name_of(sender_url), name_of(notes_url), str(token), [one.id for one in (*ids, *refused)]
        )


@pytest.fixture
def sender_database(database_server: DatabaseServer, delivered: Delivered) -> Generator[str]:
    with database_server.clone(delivered.sender) as url:
        yield url


@pytest.fixture
def notes_database(
    database_server: DatabaseServer, delivered: Delivered, environment: Callable[[str, str | None], None]
) -> Generator[str]:
    with database_server.clone(delivered.notes) as url:
        environment("ONCEBOX_NOTES_DATABASE_URL", url)
        yield url


@pytest.fixture
def ids(delivered: Delivered, sender: Sender, notes_database: str) -> list[UUID]:
    """The operations, in databases of this test's own."""
    return delivered.ids


@pytest.fixture
def service(
    tmp_path: Path,
    delivered: Delivered,
    notes_database: str,
    environment: Callable[[str, str | None], None],
) -> Generator[str]:
    """The note service on this test's database, known to the commands."""
    with serving(tmp_path, notes_database) as url:
        environment("ONCEBOX_NOTES_URL", url)
        environment("ONCEBOX_TOKEN", delivered.token)
        yield url


@contextmanager
def serving(folder: Path, notes_url: str) -> Generator[str]:
    """A note service, started as its operator starts it."""
    processes = Processes(folder)
    variables = {"ONCEBOX_NOTES_DATABASE_URL": notes_url}
    try:
        started = processes.start("notes", [ONCEBOX, "notes", "serve", "--port", "0"], env=variables)
        yield started.wait_for_log(r'"url": "(http://[^"]+)"', timeout=60)[1]
        assert started.terminate() == 0
    finally:
        processes.reap()


def administer(notes_url: str, action: str) -> dict[str, object]:
    (answer,) = note_process.ask(Server.parse(notes_url, "the test's"), *action.split())
    return answer


def name_of(url: str) -> str:
    return urlsplit(url).path.lstrip("/")


def plant(url: str, *statements: str) -> None:
    with psycopg.connect(url) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_all_is_well(oncebox: Oncebox, sender: Sender, ids: list[UUID], service: str) -> None:
    pending = sender.enqueue_one("note-9")
    sender.answer(sender.claim_one(pending), Outcome.UNKNOWN, "timeout")
    plain, deep = oncebox("verify", "--json"), oncebox("verify", "--deep", "--json")
    assert (plain.code, deep.code) == (0, 0), deep.out
    counts = {
        "operations": 5,
        "saved": 3,
        "refused": 1,
        "unknown": 1,
        "open": 1,
        "notes": 3,
        "foreign_notes": 0,
    }
    wrongs = ("lost", "duplicates", "contradictions", "mismatches", "not_permitted", "orphans", "violations")
    for ran in (plain, deep):
        assert {name: ran.json[name] for name in counts} == counts
        assert {name: ran.json[name] for name in wrongs} == dict.fromkeys(wrongs, 0)
        assert (ran.json["ok"], ran.json["problems"]) == (True, [])
    assert (plain.json["read"], deep.json["read"]) == (0, 3)
    assert "All good" in oncebox("verify").out


NOTE_1 = "(select note_id from note_version where operation_key = 'note-1')"
SECOND = (
    "insert into note select gen_random_uuid(), tenant, folder_id, version, created_at from note where id = "
    + NOTE_1,
    "insert into note_version select n.id, v.version, v.tenant, v.principal, {key}, v.folder, v.title, v.text, v.format,"
    " v.etag, v.args_hash, v.call_id, v.token_id, v.grant_id, v.created_at"
    " from note_version v, note n where v.operation_key = 'note-1'"
    " and not exists (select from note_version x where x.note_id = n.id)",
)


@pytest.mark.parametrize(
    ("found", "statements"),
    [
        ("duplicate", [SECOND[0], SECOND[1].format(key="'note-1-again'")]),
        (
            "duplicate",
            [
                "alter table note_version drop constraint uq_note_version_tenant_principal_operation_key",
                SECOND[0],
                SECOND[1].format(key="v.operation_key"),
            ],
        ),
        (
            "lost",
            [
                "create temporary table gone as select note_id as id from note_version where operation_key = 'note-1'",
                "delete from note_version where note_id in (select id from gone)",
                "delete from note where id in (select id from gone)",
            ],
        ),
        ("mismatch", ["update note_version set text = 'Reef A' where operation_key = 'note-1'"]),
        ("mismatch", ["update note_version set args_hash = repeat('ab', 32) where operation_key = 'note-1'"]),
        ("mismatch", ["update note_version set etag = '9' where operation_key = 'note-1'"]),
        ("mismatch", ["delete from operation_record where key = 'note-1'"]),
        (
            "mismatch",
            [
                "insert into folder (tenant, path) values ('demo', 'elsewhere')",
                "update note set folder_id = (select id from folder where path = 'elsewhere') where id = "
                + NOTE_1,
            ],
        ),
        (
            "not_permitted",
            [
                "update folder_grant set granted_at = clock_timestamp()",
                "update note_version set created_at = created_at + interval '1 h' where operation_key <> 'note-1'",
            ],
        ),
        (
            "not_permitted",
            ["update note_version set grant_id = 0 where operation_key = 'note-1'"],
        ),
    ],
)
def test_a_planted_wrong_is_found_and_its_operation_named(
    oncebox: Oncebox, sender: Sender, notes_database: str, ids: list[UUID], found: str, statements: list[str]
) -> None:
    plant(notes_database, *statements)
    ran = oncebox("verify", "--json")
    assert (ran.code, ran.json["ok"]) == (8, False)
    problems = [
        (problem["found"], problem["operation_id"], problem["id"]) for problem in ran.json["problems"]
    ]
    assert (found, "note-1", str(ids[1])) in problems
    assert {operation_id for _, operation_id, _ in problems} == {"note-1"}
    counted = {"lost": int(found == "lost"), "duplicates": int(found == "duplicate")}
    assert {name: ran.json[name] for name in counted} == counted
    assert ran.json["notes"] == 3 - counted["lost"] + counted["duplicates"]
    assert f"note-1: {found}: " in oncebox("verify").out


def test_notes_duplicates_and_lost_are_counted_by_sql_alone(notes_database: str, ids: list[UUID]) -> None:
    """Without the comparison that names them: both must come to the same."""
    keys = [Key("demo", "researcher", f"note-{n}") for n in range(4)]
    promised = [True, True, True, False]
    with NotesLedger.connected(notes_database) as ledger:
        assert ledger.counted(keys, promised) == Counted(notes=3, duplicates=0, lost=0)
        assert ledger.counted([], []) == Counted(0, 0, 0)
        assert ledger.counted([Key("demo", "another", "note-0")], [True]) == Counted(0, 0, 1)
        plant(
            notes_database,
            "alter table note_version drop constraint uq_note_version_tenant_principal_operation_key",
            SECOND[0],
            SECOND[1].format(key="v.operation_key"),
            "delete from note_version where operation_key = 'note-2'",
        )
        assert ledger.counted(keys, promised) == Counted(notes=3, duplicates=1, lost=1)


def test_a_note_behind_a_definite_no_is_a_contradiction(
    oncebox: Oncebox, sender: Sender, notes_database: str, ids: list[UUID]
) -> None:
    sender.change(
        "update oncebox.operation set final = 'not_saved', reason = 'cancelled', receipt = null where id = any(:ids)",
        [ids[1]],
    )
    ran = oncebox("verify", "--json")
    assert (ran.code, ran.json["contradictions"], ran.json["problems"][0]["operation_id"]) == (8, 1, "note-1")


def test_an_edit_that_the_tables_explain_is_found_by_reading_it(
    oncebox: Oncebox, sender: Sender, notes_database: str, ids: list[UUID], service: str
) -> None:
    """The receiver's answer is compared, not only its tables: here it hands out another principal's note."""
    plant(notes_database, "update note_version set principal = 'another' where operation_key = 'note-1'")
    deep = oncebox("verify", "--deep", "--json")
    assert deep.code == 8
    assert any("read over HTTP" in problem["detail"] for problem in deep.json["problems"])


def test_a_note_whose_grant_was_revoked_since_is_well_and_just_not_read(
    oncebox: Oncebox, sender: Sender, ids: list[UUID], service: str
) -> None:
    assert oncebox("grant", "revoke", "--tenant=demo", "--principal=researcher", "--folder=drafts").code == 0
    deep = oncebox("verify", "--deep", "--json")
    assert (deep.code, deep.json["read"], deep.json["not_permitted"]) == (0, 0, 0)


def test_notes_of_others_are_counted_and_are_no_fault(
    oncebox: Oncebox, sender: Sender, notes_database: str, ids: list[UUID]
) -> None:
    plant(
        notes_database,
        SECOND[0],
        SECOND[1].format(key="'theirs'").replace("v.args_hash,", "repeat('ab', 32),"),
    )
    ran = oncebox("verify", "--json")
    assert (ran.code, ran.json["notes"], ran.json["foreign_notes"], ran.json["receiver_notes"]) == (
        0,
        3,
        1,
        4,
    )


def test_orphans_and_recorded_violations_are_off(oncebox: Oncebox, sender: Sender, ids: list[UUID]) -> None:
    """F23: a live operation that nothing would move on is found."""
    orphan = sender.enqueue_one("note-9")
    sender.change("delete from oncebox.outbox_entry where id = any(:ids)", [orphan])
    sender.change(
        "insert into oncebox.violation (kind, id, detail) select 'different_receipt', unnest(cast(:ids as uuid[])), '{}'",
        [ids[0]],
    )
    ran = oncebox("verify", "--json")
    assert (ran.code, ran.json["orphans"], ran.json["violations"]) == (8, 1, 1)
    assert {(problem["found"], problem["operation_id"]) for problem in ran.json["problems"]} == {
        ("orphan", "note-9"),
        ("violation", "note-0"),
    }


def test_it_walks_page_by_page(
    oncebox: Oncebox, sender: Sender, ids: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "PAGE", 1)
    ran = oncebox("verify", "--json")
    assert (ran.code, ran.json["operations"], ran.json["notes"]) == (0, 4, 3)


def test_reading_needs_the_service_and_a_token_that_is_accepted(
    oncebox: Oncebox,
    sender: Sender,
    ids: list[UUID],
    service: str,
    environment: Callable[[str, str | None], None],
) -> None:
    environment("ONCEBOX_TOKEN", "oncebox_wrong")
    assert oncebox("verify", "--deep").code == 1
    environment("ONCEBOX_NOTES_URL", "http://127.0.0.1:1")
    ran = oncebox("verify", "--deep")
    assert (ran.code, "http://127.0.0.1:1" in ran.err) == (9, True)
    environment("ONCEBOX_NOTES_URL", None)
    assert "ONCEBOX_NOTES_URL is not set" in oncebox("verify", "--deep").err


def test_the_receivers_database_must_be_one(
    oncebox: Oncebox, sender: Sender, environment: Callable[[str, str | None], None]
) -> None:
    environment("ONCEBOX_NOTES_DATABASE_URL", sender.url)
    ran = oncebox("verify")
    assert (ran.code, "no tables of the note service" in ran.err) == (1, True)
    environment("ONCEBOX_NOTES_DATABASE_URL", "postgresql://h@127.0.0.1:1/x")
    assert oncebox("verify").code == 9
