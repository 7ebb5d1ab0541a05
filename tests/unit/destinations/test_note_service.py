"""What the client sends and hears when all is well, over real sockets."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from uuid import UUID, uuid4

import pytest

from oncebox_destinations.note_service import NoteService
from oncebox_destinations.protocol import Destination, StoredNote
from oncebox_destinations.reads import ReadRefused, ReceiverUnreachable
from oncebox_models.calls import Capabilities
from oncebox_models.outcomes import Answer, Outcome
from oncebox_models.schedule import RetrySchedule
from tests.unit.destinations.raw_receiver import Behaviour, Connection, RawReceiver, Received
from tests.unit.destinations.samples import (
    CALL_ID,
    CAPABILITIES,
    TOKEN,
    capabilities_seen,
    created,
    operation,
    problem,
    receipt,
    run,
    settings,
    turned_away,
)


def replying(*replies: tuple[object, int, Mapping[str, str]]) -> Behaviour:
    """Answer the requests of a connection one after another."""

    def behave(connection: Connection) -> None:
        for body, status, headers in replies:
            connection.read()
            connection.reply(body, status, headers)
        connection.wait_for_client_to_go()

    return behave


def ok(*items: object) -> tuple[object, int, Mapping[str, str]]:
    return {"items": list(items)}, 200, {}


def test_it_is_a_destination() -> None:
    service: Destination = NoteService(settings("http://notes.test"))
    asyncio.run(service.aclose())


def test_a_batch_gets_an_answer_for_each_operation_whatever_the_order() -> None:
    saved, replayed, denied, busy, other, sealed, late = (operation(f"note-{number}") for number in range(7))
    items = [
        turned_away(late, 410, problem(410, "operation_expired")),
        turned_away(busy, 409, problem(409, "operation_in_progress", retry={"after_s": 1})),
        created(replayed, replayed=True),
        turned_away(denied, 403, problem(403, "folder_not_writable", permitted_folders=["drafts"])),
        turned_away(other, 422, problem(422, "argument_conflict")),
        created(saved),
        turned_away(sealed, 409, problem(409, "operation_sealed")),
    ]
    sent = [saved, replayed, denied, busy, other, sealed, late]
    with RawReceiver(replying(ok(*items))) as receiver:
        answers = run(
            lambda: NoteService(settings(receiver.url)), lambda service: service.send(CALL_ID, sent)
        )
    assert [(answers[of.id].outcome, answers[of.id].reason) for of in sent] == [
        (Outcome.RECEIPT, "created"),
        (Outcome.RECEIPT, "replayed"),
        (Outcome.REFUSED, "folder_not_writable"),
        (Outcome.IN_PROGRESS, "operation_in_progress"),
        (Outcome.CONFLICT, "argument_conflict"),
        (Outcome.SEALED, "operation_sealed"),
        (Outcome.GONE, "operation_expired"),
    ]
    refusal = answers[denied.id].problem
    assert refusal is not None
    assert refusal["permitted_folders"] == ["drafts"]
    assert answers[busy.id].retry_after_s == 1.0


def test_status_and_seal_get_an_answer_for_each_key() -> None:
    done, sealed, alive, missing = (operation(f"note-{number}") for number in range(4))
    items = [
        {"operation_id": missing.operation_id, "state": "not_found", "args_hash": None, "note": None},
        receipt(done) | {"state": "completed", "as_of": "2026-01-01T00:00:00Z"},
        {"operation_id": alive.operation_id, "state": "in_progress", "args_hash": None, "note": None},
        {"operation_id": sealed.operation_id, "state": "sealed", "args_hash": sealed.args_hash, "note": None},
    ]
    busy = turned_away(alive, 409, problem(409, "operation_in_progress"))

    async def work(service: NoteService) -> Sequence[Mapping[UUID, Answer]]:
        asked = await service.status(CALL_ID, [done, sealed, alive, missing])
        return [asked, await service.seal(CALL_ID, [done, alive])]

    with RawReceiver(replying(ok(*items), ok(items[1], busy))) as receiver:
        asked, closed = run(lambda: NoteService(settings(receiver.url)), work)
    assert [asked[of.id].outcome for of in (done, sealed, alive, missing)] == [
        Outcome.RECEIPT,
        Outcome.SEALED,
        Outcome.IN_PROGRESS,
        Outcome.NOT_FOUND,
    ]
    assert [closed[of.id].outcome for of in (done, alive)] == [Outcome.RECEIPT, Outcome.IN_PROGRESS]
    assert [request.line for request in receiver.requests] == [
        "POST /v1/operations:status HTTP/1.1",
        "POST /v1/operations:seal HTTP/1.1",
    ]


def test_r45_r47_the_key_and_the_bytes_are_the_same_at_every_attempt() -> None:
    ours = operation("note-7")
    lost: tuple[object, int, Mapping[str, str]] = (b"<html>", 502, {})

    async def work(service: NoteService) -> list[Answer]:
        return [(await service.send(uuid4(), [ours]))[ours.id] for _ in range(3)]

    with RawReceiver(replying(lost, lost, ok(created(ours, replayed=True)))) as receiver:
        answers = run(lambda: NoteService(settings(receiver.url)), work)
    assert [answer.outcome for answer in answers] == [Outcome.UNKNOWN, Outcome.UNKNOWN, Outcome.RECEIPT]
    assert len({without_call(request) for request in receiver.requests}) == 1
    assert all(f'"arguments":{ours.arguments}'.encode() in request.body for request in receiver.requests)
    assert len({request.headers["call-id"] for request in receiver.requests}) == 3


def without_call(request: Received) -> bytes:
    return request.body.replace(request.headers["call-id"].encode(), b"")


def test_what_stands_in_the_head_of_a_request() -> None:
    with RawReceiver(replying(ok())) as receiver:
        run(lambda: NoteService(settings(receiver.url)), lambda service: service.send(CALL_ID, [operation()]))
    (request,) = receiver.requests
    assert request.line == "POST /v1/notes:batch HTTP/1.1"
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["call-id"] == str(CALL_ID)
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"].startswith("oncebox/")


def test_nothing_is_taken_from_the_environment_or_kept_from_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    cookie = {"Set-Cookie": "session=1; Path=/"}

    async def work(service: NoteService) -> None:
        await service.send(CALL_ID, [operation()])
        await service.send(CALL_ID, [operation()])

    with RawReceiver(replying(({"items": []}, 200, cookie), ok())) as receiver:
        run(lambda: NoteService(settings(receiver.url)), work)
    assert len(receiver.requests) == 2
    assert "cookie" not in receiver.requests[1].headers


def test_a_key_of_two_principals_is_asked_for_in_two_requests_of_one_call() -> None:
    ann, bob = operation("note-7", principal="ann"), operation("note-7", principal="bob", text="other")
    replies = replying(ok(created(ann)), ok(created(bob)))
    with RawReceiver(replies) as receiver:
        answers = run(
            lambda: NoteService(settings(receiver.url)), lambda service: service.send(CALL_ID, [ann, bob])
        )
    assert [answers[of.id].outcome for of in (ann, bob)] == [Outcome.RECEIPT, Outcome.RECEIPT]
    assert {request.headers["call-id"] for request in receiver.requests} == {str(CALL_ID)}


def test_batch_limits_are_the_ones_seen_last() -> None:
    operations = [operation(f"note-{number}") for number in range(4)]
    small = CAPABILITIES | {"batch": {"max_items": 2, "max_bytes": 8_388_608}}

    async def work(service: NoteService) -> None:
        await service.send(CALL_ID, operations)
        await service.capabilities()
        await service.send(CALL_ID, operations)

    with RawReceiver(replying(ok(), ok(), (small, 200, {}), ok(), ok())) as receiver:
        run(lambda: NoteService(settings(receiver.url), seen=capabilities_seen(items=3)), work)
    sizes = [len(json.loads(request.body)["items"]) for request in receiver.requests if request.body]
    assert sizes == [3, 1, 2, 2]


# --- reads ---------------------------------------------------------------------------------------------------


def read(
    receiver: RawReceiver, work: Callable[[NoteService], Awaitable[object]]
) -> tuple[object, list[float]]:
    """The value of a read, and what the client slept."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def service() -> NoteService:
        return NoteService(
            settings(receiver.url),
            schedule=RetrySchedule(base_s=1.0, ceiling_s=8.0),
            sleep=sleep,
            random=lambda: 1.0,
        )

    return run(service, work), slept


def test_capabilities_are_read_through_temporary_failures_with_growing_delays() -> None:
    down = (b"<html>", 502, {})
    told = (problem(503, "busy"), 503, {"Retry-After": "5"})
    with RawReceiver(replying(down, told, (CAPABILITIES, 200, {}))) as receiver:
        said, slept = read(receiver, lambda service: service.capabilities())
    assert slept == [1.0, 7.0]
    assert isinstance(said, Capabilities)
    assert (said.receiver, said.batch_items, said.batch_bytes) == (CAPABILITIES["receiver"], 500, 8_388_608)
    assert (said.admission_window_s, said.request_limit_s) == (604_800.0, 30.0)
    assert said.tombstone_retention_s == 691_200.0
    assert "authorization" in receiver.requests[0].headers


def test_a_read_that_never_succeeds_says_where_and_for_how_long_it_was_tried() -> None:
    with RawReceiver(lambda connection: connection.close()) as receiver:
        with pytest.raises(ReceiverUnreachable, match=f"GET {receiver.url}/v1/capabilities failed: 4 tries"):
            read(receiver, lambda service: service.capabilities())
        assert receiver.connections == 4


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, problem(401, "unauthenticated"), "401 unauthenticated: what to do next"),
        (404, b"<html>", "404; check the URL"),
        (302, b"", "302; check the URL"),
        (200, b"<html>hotel login</html>", "check the URL"),
        (200, b"{}", "receiver: Field required"),
        (200, CAPABILITIES | {"batch": {"max_items": 0, "max_bytes": 1}}, "batch.max_items"),
        (200, CAPABILITIES | {"server_time": "2026-01-01T00:00:00"}, "server_time"),
    ],
)
def test_a_definite_no_to_a_read_is_said_once(status: int, body: object, said: str) -> None:
    with RawReceiver(replying((body, status, {}))) as receiver:
        with pytest.raises(ReadRefused) as caught:
            read(receiver, lambda service: service.capabilities())
        assert len(receiver.requests) == 1
    assert said in str(caught.value)
    assert receiver.url in str(caught.value)
    assert TOKEN not in str(caught.value)


NOTE = {
    "id": "5f0c6f0e-0000-4000-8000-000000000007",
    "folder": "drafts",
    "version": 2,
    "etag": "2-abc",
    "location": "/v1/notes/5f0c6f0e-0000-4000-8000-000000000007",
    "created_at": "2026-01-01T00:00:00.000000Z",
    "title": "Finding 7",
    "text": "…",
    "format": "markdown",
    "args_hash": "0" * 64,
    "principal": "researcher",
    "operation_id": "note-7",
}


def test_a_note_is_read_back_by_its_id_for_a_principal() -> None:
    with RawReceiver(replying((NOTE, 200, {}))) as receiver:
        note, _ = read(
            receiver, lambda service: service.read_note("a/b", on_behalf_of="demo/researcher", version=2)
        )
    assert isinstance(note, StoredNote)
    assert (note.operation_id, note.version, note.folder) == ("note-7", 2, "drafts")
    assert receiver.requests[0].line == "GET /v1/notes/a%2Fb?version=2 HTTP/1.1"
    assert receiver.requests[0].headers["on-behalf-of"] == "demo/researcher"


def test_no_such_note_is_none_and_no_such_page_is_not() -> None:
    with RawReceiver(replying((problem(404, "note_not_found"), 404, {}))) as receiver:
        note, _ = read(receiver, lambda service: service.read_note("x", on_behalf_of=None))
    assert note is None
    assert "on-behalf-of" not in receiver.requests[0].headers
    with RawReceiver(replying((b"<html>", 404, {}))) as receiver, pytest.raises(ReadRefused):
        read(receiver, lambda service: service.read_note("x", on_behalf_of=None))


def test_folders_are_listed_for_a_principal() -> None:
    body = {"folders": [{"path": "drafts"}, {"path": "drafts/reef"}]}
    with RawReceiver(replying((body, 200, {}))) as receiver:
        found, _ = read(receiver, lambda service: service.list_folders(on_behalf_of="demo/researcher"))
    assert found == ["drafts", "drafts/reef"]
    assert receiver.requests[0].headers["on-behalf-of"] == "demo/researcher"
