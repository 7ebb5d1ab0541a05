"""A delegate outside its tenants, a principal for somebody else, a token that is no more: refused, and nothing recorded."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

import httpx2
import pytest

from tests.notes.running import Sender, arguments, item, moment
from tests.proof.security.house import House, fresh_key


def _write(sender: Sender, acting: str, key: str, **more: str) -> httpx2.Response:
    headers = {
        "On-Behalf-Of": acting,
        "Idempotency-Key": key,
        "Operation-Deadline": moment(60),
        "If-Match": '"1-0123456789abcdef"',
    }
    content = {"title": "T", "text": "Never to be written."}
    if "note" in more:
        return sender.http.put(f"/v1/notes/{more['note']}", json=content, headers=headers)
    return sender.http.post("/v1/notes", json=arguments() | content, headers=headers)


def _ask(sender: Sender, path: str, acting: str) -> httpx2.Response:
    return sender.http.get(path, headers={"On-Behalf-Of": acting})


def _item(sender: Sender, path: str, member: str, value: dict[str, object]) -> httpx2.Response:
    """The answer to a list of one, as if it had been asked for alone."""
    reply = sender.http.post(path, json={member: [value]})
    (found,) = reply.json()["items"]
    return httpx2.Response(found["status"], json=found["problem"])


@dataclass(frozen=True, slots=True)
class Use:
    """A token used for `acting`, on the key and the id of a note that exists."""

    by: Sender
    acting: str
    key: str
    note: str


# All that a token may be used for.
USES: dict[str, Callable[[Use], httpx2.Response]] = {
    "create": lambda use: _write(use.by, use.acting, use.key),
    "create, new": lambda use: _write(use.by, use.acting, fresh_key()),
    "revise": lambda use: _write(use.by, use.acting, fresh_key(), note=use.note),
    "read": lambda use: _ask(use.by, f"/v1/notes/{use.note}", use.acting),
    "read nobody's": lambda use: _ask(use.by, f"/v1/notes/{uuid4()}", use.acting),
    "look up": lambda use: _ask(use.by, f"/v1/notes?operation={use.key}", use.acting),
    "status": lambda use: _ask(use.by, f"/v1/operations/{use.key}", use.acting),
    "folders": lambda use: _ask(use.by, "/v1/folders", use.acting),
    "seal": lambda use: use.by.http.post(
        f"/v1/operations/{use.key}:seal",
        headers={"On-Behalf-Of": use.acting, "Operation-Deadline": moment(60)},
    ),
    "batch": lambda use: _item(use.by, "/v1/notes:batch", "items", item(use.key, acting=use.acting)),
    "status of many": lambda use: _item(
        use.by, "/v1/operations:status", "operations", {"operation_id": use.key, "on_behalf_of": use.acting}
    ),
    "seal many": lambda use: _item(
        use.by,
        "/v1/operations:seal",
        "items",
        {"operation_id": use.key, "on_behalf_of": use.acting, "deadline": moment(60)},
    ),
}


@pytest.mark.parametrize("use", USES)
def test_a_delegate_outside_its_tenants_gets_one_answer_for_everything(house: House, use: str) -> None:
    """Whether the principal, the key and the note exist or not: the same words, and no row anywhere."""
    delegate, key = house.delegate("demo"), fresh_key()
    note = house.party("acme/researcher").sender.create(key).json()["note"]["id"]
    before = house.fingerprint()
    said = set[str]()
    for acting in ("acme/researcher", "acme/writer", "acme/nobody", "nowhere/researcher", "Demo/researcher"):
        reply = USES[use](Use(delegate, acting, key, note))
        assert reply.status_code == 401, acting
        assert reply.json()["code"] == "unauthenticated"
        assert note not in reply.text
        # Of all that is said only the name differs, as it was sent.
        said.add(reply.text.replace(acting, "X/Y"))
    assert len(said) == 1
    assert house.fingerprint() == before


@pytest.mark.parametrize("use", USES)
def test_a_principal_may_act_for_nobody_else(house: House, use: str) -> None:
    """Not even in its own tenant, and not for the same name in another."""
    party, key = house.party("demo/researcher"), fresh_key()
    note = house.party("acme/researcher").sender.create(key).json()["note"]["id"]
    before = house.fingerprint()
    for acting in ("acme/researcher", "demo/writer", "demo/nobody"):
        assert USES[use](Use(party.sender, acting, key, note)).status_code == 401, acting
    assert house.fingerprint() == before


FORMS = ["demo", "demo/", "/researcher", "demo/researcher/", "demo//researcher", "demo/../acme/researcher",
         "demo%2Fresearcher", "demo/researcher,acme/researcher", "demo/researcher acme/researcher",
         "*/*", "demo/*", "acme\\researcher", "../acme/researcher"]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_principal_that_is_not_written_as_one_is_refused(house: House, form: str) -> None:
    delegate, before = house.delegate("demo"), house.fingerprint()
    for use in ("create", "batch", "read", "status of many"):
        reply = USES[use](Use(delegate, form, fresh_key(), str(uuid4())))
        assert reply.status_code == 400, (use, reply.text)
        assert reply.json()["code"] == "invalid_argument"
    # The token of a delegate is a row of its own.
    assert {name: rows for name, rows in house.fingerprint().items() if name != "token"} == {
        name: rows for name, rows in before.items() if name != "token"
    }


def test_in_a_batch_the_items_of_other_tenants_are_refused_and_the_others_are_written(house: House) -> None:
    key, delegate = fresh_key(), house.delegate("demo")
    actings = ["demo/researcher", "acme/researcher", "demo/writer", "acme/writer"]
    answered = delegate.batch(*(item(key, acting=acting) for acting in actings))
    assert [found["status"] for found in answered] == [201, 401, 201, 401]
    written = house.rows(
        "SELECT tenant, principal FROM note_version WHERE operation_key = %s ORDER BY 2", key
    )
    assert written == [("demo", "researcher"), ("demo", "writer")]
    records = house.rows("SELECT DISTINCT tenant FROM operation_record WHERE key = %s", key)
    assert records == [("demo",)]


def test_the_header_does_not_widen_what_an_item_may_name(house: House) -> None:
    """A delegate of both tenants that acts for one of them names the other in an item: the item's name counts, and it
    is checked by the same rule; a delegate of one tenant gains nothing by a header."""
    key, delegate = fresh_key(), house.delegate("demo")
    delegate.http.headers["On-Behalf-Of"] = "demo/researcher"
    (foreign,) = delegate.batch(item(key, acting="acme/researcher"))
    assert foreign["status"] == 401
    delegate.http.headers["On-Behalf-Of"] = "acme/researcher"
    (own,) = delegate.batch(item(key, acting="demo/researcher"))
    assert own["status"] == 201
    twice = delegate.http.get(
        f"/v1/operations/{key}",
        headers=[("On-Behalf-Of", "demo/researcher"), ("On-Behalf-Of", "demo/writer")],
    )
    assert twice.status_code == 400


def test_authority_in_a_body_is_refused_wherever_it_stands(house: House) -> None:
    sender, before = house.party("demo/researcher").sender, house.fingerprint()
    claims: list[dict[str, object]] = [
        {"authorized": True},
        {"tenant": "acme"},
        {"principal": "writer"},
        {"grant_id": 1},
        {"on_behalf_of": "demo/researcher"},
        {"token": "x"},
    ]
    headers = {"Idempotency-Key": fresh_key(), "Operation-Deadline": moment(60)}
    for claim in claims:
        alone = sender.http.post("/v1/notes", json=arguments() | claim, headers=headers)
        assert alone.json()["code"] == "invalid_argument", claim
        inside = sender.batch(item(fresh_key(), arguments=arguments() | claim))
        assert inside[0]["problem"]["code"] == "invalid_argument", claim
    assert house.fingerprint() == before


def test_a_revoked_token_ends_with_the_next_request_and_others_stay(house: House) -> None:
    ended, stays = house.delegate("demo", "acme"), house.delegate("demo")
    key = fresh_key()
    assert ended.batch(item(key, acting="acme/writer"))[0]["status"] == 201
    token_id = ended.http.headers["Authorization"].split("_")[1]
    house.execute("UPDATE token SET revoked_at = now() WHERE id = %s", token_id)
    before = house.fingerprint()
    for acting in ("acme/writer", "demo/researcher"):
        assert _write(ended, acting, key).json()["code"] == "unauthenticated"
        assert _ask(ended, f"/v1/operations/{key}", acting).status_code == 401
    assert house.fingerprint() == before
    assert _ask(stays, f"/v1/operations/{key}", "demo/researcher").json()["state"] == "not_found"
