"""A revocation that races a write: in both orders, under load, and what is left to the owner afterwards."""

import subprocess
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2
import pytest

from tests.notes.running import arguments, item
from tests.proof.security.house import ONCEBOX, House, Party, fresh_key
from tests.support.polling import eventually

WAITING = """
SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE NOT granted AND locktype = ANY(%s) AND datname = current_database()
"""


def wait_for_waiting(house: House, count: int, *kinds: str) -> None:
    """Until so many sessions wait for locks of these kinds."""
    eventually(
        lambda: house.rows(WAITING, list(kinds))[0][0] >= count, timeout=20, what=f"{count} wait for {kinds}"
    )


@contextmanager
def revoking(house: House, party: Party) -> Generator["subprocess.Popen[str]"]:
    """`oncebox grant revoke`, as an operator types it, under way."""
    named = ["--tenant", party.tenant, "--principal", party.principal, "--folder", "drafts"]
    with subprocess.Popen(
        [*ONCEBOX, "grant", "revoke", *named, "--notes-database-url", house.database_url],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: "subprocess.Popen[str]") -> None:
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 0, said


@pytest.mark.parametrize("form", ["alone", "in a batch"])
def test_a_write_that_was_first_commits_and_the_revocation_waits_for_it(
    house: House, party: Party, form: str
) -> None:
    """The write is stopped in the middle of its transaction, after it has read the grant. The command must not end
    before the note is there, and the note's time lies before the revocation's."""
    key = fresh_key()
    with ThreadPoolExecutor(1) as pool, house.connect(autocommit=False) as barrier:
        barrier.execute("LOCK TABLE note_version IN SHARE MODE")
        writing = pool.submit(send, party, key, form)
        wait_for_waiting(house, 1, "relation")
        with revoking(house, party) as revocation:
            wait_for_waiting(house, 1, "advisory")
            assert revocation.poll() is None
            barrier.rollback()
            assert writing.result(20) == 201
            ended(revocation)
    ((created_at, granted_at, revoked_at),) = house.rows(
        "SELECT v.created_at, g.granted_at, g.revoked_at FROM note_version v JOIN folder_grant g ON g.id = v.grant_id"
        " WHERE operation_key = %s",
        key,
    )
    assert granted_at <= created_at <= revoked_at
    assert send(party, fresh_key(), form) == 403


@pytest.mark.parametrize("form", ["alone", "in a batch"])
def test_a_revocation_that_was_first_commits_and_the_write_is_refused(
    house: House, party: Party, form: str
) -> None:
    """The command is stopped in the middle of its transaction, at the row that it changes. A write that comes now
    waits for it, and finds no grant."""
    key = fresh_key()
    with ThreadPoolExecutor(1) as pool, house.connect(autocommit=False) as barrier:
        barrier.execute("SELECT FROM folder_grant WHERE revoked_at IS NULL FOR UPDATE")
        with revoking(house, party) as revocation:
            wait_for_waiting(house, 1, "transactionid", "tuple")
            before = house.rows("SELECT count(*) FROM note_version")
            writing = pool.submit(send, party, key, form)
            wait_for_waiting(house, 1, "advisory")
            assert not writing.done()
            barrier.rollback()
            assert writing.result(20) == 403
            ended(revocation)
    assert house.rows("SELECT count(*) FROM note_version") == before
    assert party.sender.status(key)["state"] == "not_found"


def send(party: Party, key: str, form: str) -> int:
    """The status of a write, of one operation or of one in a batch."""
    if form == "alone":
        return party.sender.create(key).status_code
    (answer,) = party.sender.batch(item(key))
    return int(answer["status"])


def test_after_the_revocation_the_owner_gets_the_receipt_and_never_the_text(
    house: House, party: Party
) -> None:
    """R41: for each question that the owner may ask, by its own token and through a delegate."""
    key, text = fresh_key(), party.text("Findings")
    made = party.sender.create(key, text=text)
    note = made.json()["note"]
    delegate = house.delegate("demo")
    delegate.http.headers["On-Behalf-Of"] = str(party)
    nobodys = {
        sender: sender.http.get(f"/v1/notes/{'0' * 8}-{note['id'][9:]}")
        for sender in (party.sender, delegate)
    }
    house.revoke("drafts", party.principal, tenant=party.tenant)
    for sender in (party.sender, delegate):
        replayed = sender.create(key, text=text)
        assert (replayed.status_code, replayed.headers["idempotent-replayed"]) == (201, "true")
        assert replayed.content == made.content
        told = [
            replayed,
            sender.http.get(f"/v1/operations/{key}"),
            sender.http.get(f"/v1/notes?operation={key}"),
            sender.seal(key),
            sender.http.post("/v1/operations:status", json={"operations": [{"operation_id": key}]}),
            sender.http.post("/v1/notes:batch", json={"items": [item(key, arguments=arguments(text=text))]}),
        ]
        for reply in told:
            assert note["id"] in reply.text
        denied = [
            sender.http.get(f"/v1/notes/{note['id']}"),
            sender.http.get(f"/v1/notes/{note['id']}?version=1"),
            sender.revise(note["id"], fresh_key(), f'"{note["etag"]}"'),
        ]
        for reply in denied:
            assert (reply.status_code, reply.json()["code"]) == (404, "note_not_found")
        # As for an id that nobody has: not even that it is there.
        assert denied[0].content == nobodys[sender].content
        assert sender.create(fresh_key()).status_code == 403
        for reply in (*told, *denied):
            assert text not in reply.text
            assert "Finding 7" not in reply.text
    # The permission is back, and so is the text: what counts is the grant of now.
    house.grant("drafts", party.principal, tenant=party.tenant)
    assert party.sender.http.get(f"/v1/notes/{note['id']}").json()["text"] == text


def test_a_revoked_reader_is_refused_at_once(house: House, party: Party) -> None:
    """Reading has no transaction to wait for: it looks at the grant in the statement that reads."""
    note = party.sender.create(fresh_key()).json()["note"]["id"]
    house.revoke("drafts", party.principal, tenant=party.tenant)
    replies: list[httpx2.Response] = [party.sender.http.get(f"/v1/notes/{note}") for _ in range(5)]
    assert {reply.status_code for reply in replies} == {404}
