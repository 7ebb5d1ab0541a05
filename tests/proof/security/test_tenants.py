"""Two tenants, two principals, the same keys: four notes, and nobody learns of another's."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import httpx2
import pytest

from tests.notes.running import item, moment
from tests.proof.security.house import House, Party, fresh_key


def create(party: Party, key: str) -> httpx2.Response:
    return party.sender.create(key, text=party.text(key))


def test_one_key_of_four_parties_is_four_notes(house: House) -> None:
    key = fresh_key()
    made = {party: create(party, key) for party in house.parties}
    assert {reply.status_code for reply in made.values()} == {201}
    ids = {party: reply.json()["note"]["id"] for party, reply in made.items()}
    assert len(set(ids.values())) == 4

    for party, reply in made.items():
        # Each again gets its own receipt, byte for byte; what a neighbour sent under the key is a conflict for it.
        assert create(party, key).content == reply.content
        for other in house.parties:
            if other is not party:
                foreign = party.sender.create(key, text=other.text(key))
                assert foreign.json()["code"] == "argument_conflict"
                assert ids[other] not in foreign.text
        note = reply.json()["note"]
        assert party.sender.status(key)["note"] == note
        assert party.sender.http.get(f"/v1/notes?operation={key}").json() == {"notes": [note]}
        assert party.sender.seal(key).json()["note"] == note
        read = party.sender.http.get(f"/v1/notes/{ids[party]}").json()
        assert read["text"] == party.text(key)
    stored = house.rows(
        "SELECT tenant, principal, text FROM note_version WHERE operation_key = %s ORDER BY 1, 2", key
    )
    assert stored == [(party.tenant, party.principal, party.text(key)) for party in house.parties]


ASKING: dict[str, Callable[[Party, str], httpx2.Response]] = {
    "read": lambda party, note: party.sender.http.get(f"/v1/notes/{note}"),
    "read a version": lambda party, note: party.sender.http.get(f"/v1/notes/{note}?version=1"),
    "revise": lambda party, note: party.sender.revise(note, fresh_key(), '"1-0123456789abcdef"'),
}


@pytest.mark.parametrize("asked", ASKING)
def test_a_note_of_another_tenant_is_as_if_it_did_not_exist(house: House, asked: str) -> None:
    """Word for word the same answer as for an id that nobody has, and nothing recorded."""
    ask = ASKING[asked]
    ids = {party: create(party, fresh_key()).json()["note"]["id"] for party in house.parties}
    before = house.fingerprint()
    for party in house.parties:
        nobodys = ask(party, str(uuid4()))
        assert nobodys.status_code == 404
        for other in house.parties:
            if other.tenant != party.tenant:
                foreign = ask(party, ids[other])
                assert (foreign.status_code, foreign.content) == (nobodys.status_code, nobodys.content)
    assert house.fingerprint() == before


def test_a_note_in_a_folder_that_is_another_principals_alone_is_not_there_either(house: House) -> None:
    """Within a tenant: the grant on its folder decides, not who wrote it."""
    writer, researcher = house.party("demo/writer"), house.party("demo/researcher")
    private = writer.sender.create(fresh_key(), folder="private").json()["note"]["id"]
    shared = writer.sender.create(fresh_key(), folder="drafts").json()["note"]["id"]
    for ask in ASKING.values():
        assert ask(researcher, private).content == ask(researcher, str(uuid4())).content
    assert researcher.sender.http.get(f"/v1/notes/{shared}").status_code == 200


def test_folders_are_each_partys_own(house: House) -> None:
    def seen(party: Party) -> list[str]:
        return [folder["path"] for folder in party.sender.http.get("/v1/folders").json()["folders"]]

    assert {str(party): seen(party) for party in house.parties} == {
        "acme/researcher": ["drafts", "only-acme"],
        "acme/writer": ["drafts", "private"],
        "demo/researcher": ["drafts", "only-demo"],
        "demo/writer": ["drafts", "private"],
    }


def test_a_seal_closes_the_key_of_one_party_only(house: House) -> None:
    key = fresh_key()
    first, *others = house.parties
    assert first.sender.seal(key).json()["state"] == "sealed"
    assert create(first, key).json()["code"] == "operation_sealed"
    assert [party.sender.status(key)["state"] for party in others] == ["not_found"] * 3
    assert [create(party, key).status_code for party in others] == [201] * 3
    assert first.sender.status(key)["state"] == "sealed"


def test_four_parties_at_once_with_the_same_keys(house: House) -> None:
    """Eight requests of each party for each of five keys at once: one note for each party and key."""
    keys = [fresh_key() for _ in range(5)]
    start = threading.Barrier(32)

    def send(number: int) -> list[httpx2.Response]:
        party = house.parties[number % 4]
        start.wait()
        return [create(party, key) for key in keys]

    with ThreadPoolExecutor(32) as pool:
        replies = [reply for each in pool.map(send, range(32)) for reply in each]
    assert {reply.status_code for reply in replies} <= {201, 409}
    counted = house.rows(
        "SELECT tenant, principal, operation_key, count(*) FROM note_version WHERE operation_key = ANY(%s)"
        " GROUP BY 1, 2, 3",
        keys,
    )
    assert len(counted) == 20
    assert {count for *_, count in counted} == {1}


def test_one_batch_of_a_delegate_with_the_same_keys_of_both_tenants(house: House) -> None:
    """A key belongs to its principal, in the same request too; asking about many keeps them apart as well."""
    key = fresh_key()
    delegate = house.delegate("acme", "demo")
    items = [
        item(key, acting=str(party), arguments={"folder": "drafts", "title": "T", "text": party.text(key)})
        for party in house.parties
    ]
    answered = delegate.batch(*items)
    assert [found["status"] for found in answered] == [201] * 4
    notes = [found["receipt"]["note"]["id"] for found in answered]
    assert len(set(notes)) == 4
    asked = {"operations": [{"operation_id": key, "on_behalf_of": str(party)} for party in house.parties]}
    states = delegate.http.post("/v1/operations:status", json=asked).json()["items"]
    assert [state["note"]["id"] for state in states] == notes
    sealing = {
        "items": [
            {"operation_id": key, "on_behalf_of": str(party), "deadline": moment(60)}
            for party in house.parties
        ]
    }
    sealed = delegate.http.post("/v1/operations:seal", json=sealing).json()["items"]
    assert [state["note"]["id"] for state in sealed] == notes
    for party, note in zip(house.parties, notes, strict=True):
        read = delegate.http.get(f"/v1/notes/{note}", headers={"On-Behalf-Of": str(party)})
        assert json.loads(read.content)["text"] == party.text(key)
