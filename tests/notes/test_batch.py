"""Batches: order, isolation of items, sets that fail, delegates, limits."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from oncebox_notes import statements
from tests.notes.running import RunningService, Sender, arguments, item, moment


def codes(answered: list[dict[str, Any]]) -> list[str | int]:
    return [found["problem"]["code"] if "problem" in found else found["status"] for found in answered]


def test_answers_have_the_order_of_the_request_and_the_ids(
    service: RunningService, researcher: Sender
) -> None:
    keys = [f"note-{number}" for number in range(100)]
    answered = researcher.batch(*[item(key, arguments=arguments(title=key)) for key in keys])
    assert [found["operation_id"] for found in answered] == keys
    assert [found["receipt"]["operation_id"] for found in answered] == keys
    assert len({found["receipt"]["note"]["id"] for found in answered}) == 100
    titles = service.rows("SELECT operation_key FROM note_version WHERE title <> operation_key")
    assert titles == []


def test_a_batch_again_is_the_same_receipts(service: RunningService, researcher: Sender) -> None:
    items = [item(f"note-{number}") for number in range(20)]
    first, second = researcher.batch(*items), researcher.batch(*items)
    assert [found["replayed"] for found in first] == [False] * 20
    assert [found["replayed"] for found in second] == [True] * 20
    assert json.dumps([found["receipt"] for found in first]) == json.dumps(
        [found["receipt"] for found in second]
    )
    assert service.notes() == 20


BAD_ITEMS: list[tuple[Any, str]] = [
    (None, "invalid_argument"),
    ("text", "invalid_argument"),
    ([], "invalid_argument"),
    ({}, "idempotency_key_missing"),
    (item("bad") | {"operation_id": ""}, "idempotency_key_invalid"),
    (item("bad") | {"operation_id": "\u200b"}, "idempotency_key_invalid"),
    (item("bad") | {"operation_id": 7}, "idempotency_key_invalid"),
    (item("bad") | {"deadline": None}, "deadline_missing"),
    (item("bad") | {"deadline": 7}, "deadline_invalid"),
    (item("bad") | {"deadline": moment(-1)}, "operation_expired"),
    (item("bad") | {"kind": "note.delete"}, "invalid_argument"),
    (item("bad") | {"kind": ["note.create"]}, "invalid_argument"),
    (item("bad") | {"arguments": []}, "invalid_argument"),
    (item("bad") | {"arguments": {}}, "invalid_argument"),
    (item("bad") | {"authorized": True}, "invalid_argument"),
    (item("bad") | {"call_id": ""}, "invalid_argument"),
    (item("bad") | {"on_behalf_of": {"tenant": "demo"}}, "invalid_argument"),
    (item("bad") | {"on_behalf_of": "other/researcher"}, "unauthenticated"),
    (item("bad") | {"arguments": arguments(text="\ud800")}, "invalid_argument"),
    (item("bad") | {"arguments": arguments(text="\x00")}, "invalid_argument"),
    (item("bad") | {"arguments": arguments(folder="..")}, "invalid_argument"),
    (item("bad") | {"arguments": arguments(folder="archive")}, "folder_not_writable"),
    (item("bad") | {"arguments": arguments(text="x" * 262_145)}, "too_large"),
    (item("good-0"), "invalid_argument"),
]


def test_a_bad_item_never_harms_its_neighbours(service: RunningService, researcher: Sender) -> None:
    """It is a problem in its place; a key that occurs twice is one for the second."""
    sent: list[Any] = []
    expected: list[str | int] = []
    for number, (bad, code) in enumerate(BAD_ITEMS):
        if isinstance(bad, dict) and bad.get("operation_id") == "bad":
            bad = bad | {"operation_id": f"bad-{number}"}
        sent += [item(f"good-{number}"), bad]
        expected += [201, code]
    assert codes(researcher.batch(*sent)) == expected
    assert service.notes() == len(BAD_ITEMS)


def test_a_duplicate_name_in_one_item_harms_only_that_item(
    service: RunningService, researcher: Sender
) -> None:
    twice = json.dumps(item("bad")).replace('"kind"', '"kind": "note.create", "kind"')
    body = f'{{"items": [{json.dumps(item("good"))}, {twice}]}}'
    reply = researcher.http.post(
        "/v1/notes:batch", content=body.encode(), headers={"Content-Type": "application/json"}
    )
    assert codes(reply.json()["items"]) == [201, "invalid_argument"]
    assert "'kind' twice" in reply.text


def test_a_set_that_fails_falls_back_to_one_transaction_an_item(
    service: RunningService, researcher: Sender
) -> None:
    """The item that the database refuses is an internal problem; its neighbours are saved."""
    service.execute(
        "CREATE FUNCTION picky() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN IF NEW.title = 'bad' THEN RAISE 'broken'; END IF; RETURN NEW; END $$"
    )
    service.execute(
        "CREATE TRIGGER picky BEFORE INSERT ON note_version FOR EACH ROW EXECUTE FUNCTION picky()"
    )
    answered = researcher.batch(
        item("note-1"), item("note-2", arguments=arguments(title="bad")), item("note-3")
    )
    assert codes(answered) == [201, "internal", 201]
    assert service.notes() == 2
    assert researcher.status("note-2")["state"] == "not_found"


def test_a_set_that_fails_at_commit_falls_back_too(service: RunningService, researcher: Sender) -> None:
    """R3: a deferred constraint of one item."""
    service.execute(
        "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN IF NEW.title = 'bad' THEN RAISE unique_violation; END IF; RETURN NULL; END $$"
    )
    service.execute(
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON note_version DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION late()"
    )
    answered = researcher.batch(item("note-1"), item("note-2", arguments=arguments(title="bad")))
    assert codes(answered) == [201, "internal"]
    assert service.notes() == 1


def test_a_grant_that_is_being_revoked_makes_only_its_items_wait(
    service: RunningService, researcher: Sender
) -> None:
    """The set's lock wait ends; then each item is on its own, and the free ones are saved."""
    service.grant("published")
    wanted = {"tenant": "demo", "principal": "researcher", "folder": "published"}
    with service.connect(autocommit=False) as revoker:
        revoker.execute(statements.GRANT_LOCK_EXCLUSIVE, wanted)
        answered = researcher.batch(
            item("note-1"), item("note-2", arguments=arguments(folder="published")), item("note-3")
        )
    assert codes(answered) == [201, "busy", 201]
    assert answered[1]["problem"]["attempt"] == "not_executed"


def test_a_busy_key_is_the_409_of_its_item(service: RunningService, researcher: Sender) -> None:
    with service.held_key("note-2"):
        answered = researcher.batch(item("note-1"), item("note-2"), item("note-3"))
    assert codes(answered) == [201, "operation_in_progress", 201]


def test_a_batch_of_a_delegate_acts_for_many_principals(service: RunningService, worker: Sender) -> None:
    """R38, R39: the same key of two principals is two operations; grants are each principal's own."""
    service.grant("drafts", "writer")
    answered = worker.batch(
        item("note-7", acting="demo/researcher"),
        item("note-7", acting="demo/writer"),
        item("note-7", acting="demo/nobody"),
        item("note-8"),
    )
    assert codes(answered) == [201, 201, "folder_not_writable", "invalid_argument"]
    assert service.notes() == 2


def test_the_header_names_the_principal_of_items_that_name_none(
    service: RunningService, worker: Sender
) -> None:
    reply = worker.http.post(
        "/v1/notes:batch",
        json={"items": [item("note-7")]},
        headers={"On-Behalf-Of": "demo/researcher", "Call-Id": "call-9"},
    )
    assert codes(reply.json()["items"]) == [201]
    assert service.rows("SELECT principal, call_id FROM note_version") == [("researcher", "call-9")]


@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 400), ({"items": []}, 400), ({"items": {}}, 400), ({"items": [1], "more": 1}, 400), ([], 400)],
)
def test_a_request_that_is_no_batch_is_refused_as_a_whole(researcher: Sender, body: Any, status: int) -> None:
    assert researcher.http.post("/v1/notes:batch", json=body).status_code == status


def test_a_batch_has_at_most_500_items(service: RunningService, researcher: Sender) -> None:
    items = [item(f"note-{number}") for number in range(501)]
    refused = researcher.http.post("/v1/notes:batch", json={"items": items})
    assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
    assert codes(researcher.batch(*items[:500])) == [201] * 500
    assert service.notes() == 500


def test_batches_that_overlap_in_opposite_order_do_not_wait_for_each_other(
    service: RunningService, researcher: Sender
) -> None:
    """Nothing waits for a key, so there is no deadlock and no order to keep."""
    keys = [f"note-{number}" for number in range(100)]

    def send(number: int) -> list[dict[str, Any]]:
        ordered = keys if number % 2 else keys[::-1]
        return researcher.batch(*[item(key) for key in ordered])

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(send, range(6)))
    assert {code for answered in answers for code in codes(answered)} <= {201, "operation_in_progress"}
    assert codes(send(0)) == [201] * 100
    assert service.notes() == 100


def test_the_limits_are_those_of_the_capabilities(start_service: Callable[..., RunningService]) -> None:
    """R43: what is advertised is enforced."""
    service = start_service(batch_max_items=3, note_max_bytes=10, admission_window_seconds=100)
    sender = service.principal()
    promised = sender.http.get("/v1/capabilities").json()
    assert promised["batch"]["max_items"] == 3
    assert promised["limits"]["text_bytes"] == 10
    assert promised["admission_window_s"] == 100
    assert promised["tombstone_retention_s"] == 100 + 86_400
    within = item("a", arguments=arguments(text="x" * 10), deadline=moment(90))
    beyond = item("b", arguments=arguments(text="x" * 11), deadline=moment(90))
    late = item("c", arguments=arguments(text="x"), deadline=moment(110))
    assert codes(sender.batch(within, beyond, late)) == [201, "too_large", "deadline_invalid"]
