"""The same promises through the sender: outbox, relay, broker and a worker that acts as a delegate, all as processes."""

import json
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest

from oncebox_outbox import InvalidOperation
from tests.acceptance.town import Places
from tests.proof.security.folder_tricks import COMPOSED, TRICKS, Trick
from tests.proof.security.house import OUTSIDE_ITS_GRANT, TENANTS, fresh_key
from tests.proof.security.street import DEMO, OUTBOXES, Street, own_text
from tests.support import databases
from tests.support.databases import DatabaseServer
from tests.support.polling import eventually
from tests.support.processes import Processes

SEND = "POST /v1/notes:batch"


@pytest.fixture(scope="module")
def street(
    database_server: DatabaseServer,
    postgres_url: str,
    broker_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Street]:
    """Its worker is a delegate of both tenants. Shared by a module: its tests use keys of their own."""
    folder = tmp_path_factory.mktemp("street")
    with (
        database_server.clone(database_server.template("sender", databases.migrate_sender)) as sender,
        database_server.clone(database_server.template("notes", databases.migrate_notes)) as notes,
    ):
        places = Places(sender, notes, broker_url, fresh_key("street"), folder)
        with Street(places, Processes(folder)) as street:
            for outbox in OUTBOXES:
                street.grant_to(outbox)
            street.token = street.token_for(*TENANTS)
            street.open()
            yield street


@pytest.fixture(autouse=True)
def whole(street: Street) -> Generator[None]:
    """A sound network and all grants, before and after."""
    yield
    street.proxy.clear_rules()
    for outbox in OUTBOXES:
        street.grant_to(outbox)


def test_the_same_keys_of_four_parties_are_four_notes_each(street: Street) -> None:
    keys = [fresh_key() for _ in range(3)]
    for key in keys:
        for outbox in OUTBOXES:
            assert street.wish(outbox, key).created
    ids = set[str]()
    for key in keys:
        for outbox in OUTBOXES:
            known = street.settled(outbox, key)
            assert known.state == "saved", known.say
            assert known.receipt is not None
            ids.add(str(known.receipt.note["id"]))
            stored = street.notes.rows(
                "SELECT note_id::text, text FROM note_version WHERE (tenant, principal, operation_key) = (%s, %s, %s)",
                *(outbox.tenant, outbox.principal, key),
            )
            assert stored == [(known.receipt.note["id"], own_text(outbox, key))]
            assert not street.wish(outbox, key).created
    assert len(ids) == 12
    assert street.sender.violations() == []


def test_a_worker_that_is_no_delegate_of_a_tenant_writes_nothing_for_it(street: Street) -> None:
    """Its neighbours of the tenant that it may act in are saved by the same worker, in the same calls; nothing of the
    other one is recorded anywhere at the receiver; nothing is said to be saved or unsaved; and once a worker with the
    right comes, all are saved."""
    acme = [outbox for outbox in OUTBOXES if outbox.tenant == "acme"]
    demo = [outbox for outbox in OUTBOXES if outbox.tenant == "demo"]
    street.worker.terminate()
    both, street.token = street.token, street.token_for("demo")
    street.start_workers()
    key = fresh_key()
    for outbox in OUTBOXES:
        street.wish(outbox, key)
    for outbox in demo:
        assert street.settled(outbox, key).state == "saved"
    for outbox in acme:
        lost = eventually(
            lambda outbox=outbox: (
                known if (known := street.known(outbox, key)).reason == "access_lost" else None
            ),
            timeout=40,
        )
        assert lost is not None
        assert (str(lost.state), lost.receipt) == ("needs_review", None)
    for table in ("note_version", "operation_record"):
        column = "operation_key" if table == "note_version" else "key"
        tenants = street.notes.rows(f"SELECT DISTINCT tenant FROM {table} WHERE {column} = %s", key)
        assert tenants == [("demo",)], table

    street.worker.terminate()
    street.token = both
    street.start_workers()
    assert street.oncebox("reconcile").returncode == 0
    for outbox in acme:
        assert street.settled(outbox, key).state == "saved"


def test_a_revocation_before_the_request_arrives_refuses_for_good(street: Street) -> None:
    """The claim is made, the request is on its way, and the grant is taken back: refused and sealed, without a note;
    and a grant that comes later does not revive it."""
    key = fresh_key()
    barrier = street.proxy.hold(1, match=SEND, release_when_full=False)
    street.wish(DEMO, key)
    barrier.wait_until_full()
    street.revoke_from(DEMO)
    barrier.release()
    refused = street.settled(DEMO, key)
    assert (str(refused.state), refused.reason) == ("refused", "folder_not_writable")
    street.grant_to(DEMO)
    assert not street.wish(DEMO, key).created
    assert street.notes.notes_of(key) == []
    record = "SELECT state FROM operation_record WHERE key = %s"
    assert street.notes.rows(record, key) == [("sealed",)]


def test_a_revocation_after_the_write_leaves_the_owner_the_receipt_and_not_the_text(street: Street) -> None:
    """The reply is lost, the grant is taken back, and only then the worker asks again: it gets the receipt, and says
    saved. Nobody who acts for the owner gets the text any more, and no row of the sender holds more than the receipt."""
    key = fresh_key()
    barrier = street.proxy.hold_replies(1, match=SEND)
    street.proxy.swallow_replies(1, match=SEND, then="reset")
    street.wish(DEMO, key)
    barrier.wait_until_full()
    street.revoke_from(DEMO)
    barrier.release()
    saved = street.settled(DEMO, key)
    assert saved.state == "saved", saved.say
    assert saved.receipt is not None
    assert [row[1] for row in street.sender.outcomes(key)][:1] == ["unknown"]
    said = street.oncebox("show", key, "--json", "--tenant", "demo", "--principal", "researcher")
    shown = json.loads(said.stdout)
    assert shown["receipt"]["note"]["id"] == saved.receipt.note["id"]
    assert own_text(DEMO, key) not in said.stdout
    deep = json.loads(street.oncebox("verify", "--deep", "--json").stdout)
    assert deep["ok"], deep["problems"]
    read = [
        found
        for found in street.proxy.requests("GET /v1/notes/*")
        if str(saved.receipt.note["id"]) in found.path
    ]
    assert all(own_text(DEMO, key).encode() not in (found.reply_body or b"") for found in read)
    again = street.known(DEMO, key)
    assert (again.state, again.receipt) == (saved.state, saved.receipt)


def test_folder_tricks_end_refused_or_in_the_one_folder_meant(street: Street) -> None:
    """What the sender lets through is for the receiver to decide; it is sent as it was written."""
    street.grant_to(DEMO, COMPOSED)
    street.grant_to(DEMO, "only-demo")
    kept = dict[str, str]()
    for trick in TRICKS:
        key = fresh_key("trick")
        if (wrong := refused_at_once(street, key, trick)) is None:
            kept[key] = trick.means
        else:
            assert trick.means == "no folder" or len(trick.sent) > 500, trick
            assert [fault.path for fault in wrong.faults] == ["arguments.folder"]
    assert len(kept) > len(TRICKS) * 0.7
    for key, means in kept.items():
        known = street.settled(DEMO, key)
        if means in ("no folder", "not writable"):
            assert known.state == "refused", (means, known.say)
            assert known.reason == ("invalid_argument" if means == "no folder" else "folder_not_writable")
        else:
            assert known.receipt is not None, known.say
            assert known.receipt.note["folder"] == means
    folders = street.notes.rows(
        "SELECT DISTINCT folder FROM note_version WHERE operation_key = ANY(%s) ORDER BY 1", list(kept)
    )
    assert folders == [("drafts",), (COMPOSED,)]


def refused_at_once(street: Street, key: str, trick: Trick) -> InvalidOperation | None:
    """Why the sender's own side does not take it; None when it is enqueued."""
    try:
        street.wish(DEMO, key, folder=trick.sent)
    except InvalidOperation as invalid:
        return invalid
    return None


def test_under_load_each_wish_is_a_note_within_its_grant_or_refused_without_one(street: Street) -> None:
    """Wishes are enqueued and delivered while the grant is taken back and given again."""
    keys = [fresh_key("load") for _ in range(200)]

    def enqueue() -> None:
        for key in keys:
            street.wish(DEMO, key)
            time.sleep(0.01)

    with ThreadPoolExecutor(1) as pool:
        enqueuing = pool.submit(enqueue)
        while not enqueuing.done():
            time.sleep(0.15)
            street.revoke_from(DEMO)
            time.sleep(0.15)
            street.grant_to(DEMO)
        enqueuing.result()
    known = {key: street.settled(DEMO, key) for key in keys}
    assert {str(each.state) for each in known.values()} == {"saved", "refused"}
    written = {
        key
        for (key,) in street.notes.rows(
            "SELECT operation_key FROM note_version WHERE operation_key = ANY(%s)", keys
        )
    }
    assert written == {key for key, each in known.items() if each.state == "saved"}
    assert street.notes.rows(OUTSIDE_ITS_GRANT) == []
    assert {each.reason for each in known.values() if each.state == "refused"} == {"folder_not_writable"}
    assert street.sender.violations() == []
