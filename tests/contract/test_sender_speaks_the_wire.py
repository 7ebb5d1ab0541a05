"""The sender's side of docs/wire/examples: what it sends is what the examples show, and what it hears it understands.

The note service is held against the same files by its own tests.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from oncebox_destinations import outcomes_of_http, request_bodies
from oncebox_destinations.note_service import NoteService
from oncebox_destinations.protocol import StoredNote
from oncebox_destinations.reads import ReadRefused
from oncebox_models.calls import Capabilities, Outgoing
from oncebox_models.canonical import args_hash, canonical_arguments
from oncebox_models.outcomes import Answer, Outcome
from oncebox_models.states import CallKind
from tests.unit.destinations.raw_receiver import Connection, RawReceiver, Received
from tests.unit.destinations.samples import CALL_ID, DEADLINE, TOKEN, run, settings

EXAMPLES = Path(__file__).parents[2] / "docs" / "wire" / "examples"
PAST = datetime(2020, 1, 1, tzinfo=UTC)
PLACEHOLDERS = {"{deadline}": DEADLINE, "{past}": PAST}

Json = dict[str, object]
Said = Mapping[str, tuple[Outcome, str]]

SEND, STATUS, SEAL = CallKind.SEND, CallKind.STATUS, CallKind.SEAL

# What each operation of a call is told. Operations that we would never send are not among them.
CALLS: Mapping[str, tuple[CallKind, Said]] = {
    "batch": (SEND, {"note-1": (Outcome.RECEIPT, "created"), "note-2": (Outcome.RECEIPT, "created")}),
    "batch_conflict": (SEND, {"note-1": (Outcome.CONFLICT, "argument_conflict")}),
    "batch_revise": (SEND, {"note-1-edit": (Outcome.RECEIPT, "created")}),
    "batch_mixed": (
        SEND,
        {
            # The example sends this key twice. We never do, so two answers leave it open.
            "note-1": (Outcome.UNKNOWN, "doubled_item"),
            "note-2": (Outcome.RECEIPT, "created"),
            "note-3": (Outcome.SEALED, "operation_sealed"),
            "note-4": (Outcome.REFUSED, "folder_not_writable"),
            "note-5": (Outcome.IN_PROGRESS, "operation_in_progress"),
            "note-6": (Outcome.GONE, "operation_expired"),
            "note-7": (Outcome.UNAUTHENTICATED, "unauthenticated"),
            "note-8": (Outcome.REFUSED, "invalid_argument"),
        },
    ),
    "status_many": (
        STATUS,
        {
            # Asked for two principals in one request, which we never do either.
            "note-1": (Outcome.UNKNOWN, "doubled_item"),
            "note-2": (Outcome.SEALED, "sealed"),
            "note-3": (Outcome.NOT_FOUND, "not_found"),
        },
    ),
    "seal_many": (
        SEAL,
        {
            "note-1": (Outcome.RECEIPT, "completed"),
            "note-2": (Outcome.SEALED, "sealed"),
            "note-3": (Outcome.UNKNOWN, "deadline_missing"),
        },
    ),
}

# Endpoints for one operation: we use those for many, whose items carry the same bodies.
SINGLE: Mapping[str, tuple[CallKind, Outcome, str]] = {
    "argument_conflict": (SEND, Outcome.CONFLICT, "argument_conflict"),
    "create": (SEND, Outcome.RECEIPT, "created"),
    "create_by_delegate": (SEND, Outcome.RECEIPT, "created"),
    "create_replayed": (SEND, Outcome.RECEIPT, "replayed"),
    "create_replayed_after_revoke": (SEND, Outcome.RECEIPT, "replayed"),
    "deadline_invalid": (SEND, Outcome.REFUSED, "deadline_invalid"),
    "deadline_missing": (SEND, Outcome.REFUSED, "deadline_missing"),
    "delegate_outside_its_tenants": (SEND, Outcome.UNAUTHENTICATED, "unauthenticated"),
    "folder_not_writable": (SEND, Outcome.REFUSED, "folder_not_writable"),
    "idempotency_key_invalid": (SEND, Outcome.REFUSED, "idempotency_key_invalid"),
    "idempotency_key_missing": (SEND, Outcome.REFUSED, "idempotency_key_missing"),
    "invalid_argument": (SEND, Outcome.REFUSED, "invalid_argument"),
    "method_not_allowed": (SEND, Outcome.UNKNOWN, "method_not_allowed"),
    "operation_expired": (SEND, Outcome.GONE, "operation_expired"),
    "operation_in_progress": (SEND, Outcome.IN_PROGRESS, "operation_in_progress"),
    "operation_sealed": (SEND, Outcome.SEALED, "operation_sealed"),
    "precondition_failed": (SEND, Outcome.REFUSED, "precondition_failed"),
    "precondition_required": (SEND, Outcome.REFUSED, "precondition_required"),
    "revise": (SEND, Outcome.RECEIPT, "created"),
    "revise_replayed": (SEND, Outcome.RECEIPT, "replayed"),
    "seal": (SEAL, Outcome.SEALED, "sealed"),
    "seal_completed": (SEAL, Outcome.RECEIPT, "completed"),
    "status_completed": (STATUS, Outcome.RECEIPT, "completed"),
    "status_in_progress": (STATUS, Outcome.IN_PROGRESS, "in_progress"),
    "status_not_found": (STATUS, Outcome.NOT_FOUND, "not_found"),
    "status_sealed": (STATUS, Outcome.SEALED, "sealed"),
    "too_large": (SEND, Outcome.REFUSED, "too_large"),
    "unauthenticated": (SEND, Outcome.UNAUTHENTICATED, "unauthenticated"),
    "unsupported_type": (SEND, Outcome.REFUSED, "unsupported_type"),
}

READS = {"capabilities", "folders", "note_not_found", "read_note", "read_version", "route_not_found"}
NOT_OURS = {"look_up_by_operation"}
"""Endpoints that the sender does not use."""


def example(name: str) -> Json:
    """An example with its placeholders filled in."""
    written = (EXAMPLES / f"{name}.json").read_text(encoding="utf-8")
    for placeholder, moment in PLACEHOLDERS.items():
        written = written.replace(placeholder, request_bodies.moment(moment))
    if name == "batch_revise":
        # The revised note is the one that the example made before.
        value: Json = json.loads(written)
        (given,) = items(value)
        first = {argument: text(said) for argument, said in member(given, "request", "body").items()}
        note = member(items(member(value, "response", "body"))[0], "receipt", "note")
        etag = f"1-{args_hash('note.create', canonical_arguments(first))[:16]}"
        written = written.replace("{note_id}", text(note["id"])).replace("{etag}", etag)
    return json.loads(written)


def member(value: Json, *path: str) -> Json:
    for name in path:
        inner = value[name]
        assert isinstance(inner, dict)
        value = inner
    return value


def items(value: Json) -> list[Json]:
    (found,) = (inner for inner in value.values() if isinstance(inner, list))
    return found


def text(value: object) -> str:
    assert isinstance(value, str)
    return value


def held_hash(name: str, key: str) -> str:
    """The hash under which an example's answer knows a key; any other when it does not say."""
    for item in items(member(example(name), "response", "body")):
        if item["operation_id"] == key and isinstance(item.get("args_hash"), str):
            return text(item["args_hash"])
    return "0" * 64


def outgoing(name: str, item: Json) -> Outgoing:
    """The operation that an item of a request is about."""
    tenant, principal = text(item["on_behalf_of"]).split("/")
    kind, arguments = text(item.get("kind", "note.create")), item.get("arguments")
    key = text(item["operation_id"])
    frozen = json.dumps(arguments, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return Outgoing(
        id=uuid4(),
        operation_id=key,
        tenant=tenant,
        principal=principal,
        kind=kind,
        arguments=frozen,
        args_hash=args_hash(kind, frozen) if arguments else text(item.get("args_hash", held_hash(name, key))),
        deadline=datetime.fromisoformat(text(item.get("deadline", request_bodies.moment(DEADLINE)))),
    )


def sent_by_us(name: str, keys: Said) -> list[Outgoing]:
    """One operation for each key, from the first item of the example's request with that key."""
    asked = items(member(example(name), "request", "body"))
    return [outgoing(name, next(item for item in asked if item["operation_id"] == key)) for key in keys]


def exchange(name: str, kind: CallKind, operations: list[Outgoing]) -> tuple[Mapping[str, Answer], Received]:
    response = member(example(name), "response")
    status = response["status"]
    assert isinstance(status, int)

    def answer(connection: Connection) -> None:
        connection.read()
        connection.reply(response["body"], status)

    async def work(service: NoteService) -> Mapping[str, Answer]:
        calls = {SEND: service.send, STATUS: service.status, SEAL: service.seal}
        answers = await calls[kind](CALL_ID, operations)
        return {of.operation_id: answers[of.id] for of in operations}

    with RawReceiver(answer) as receiver:
        answers = run(lambda: NoteService(settings(receiver.url)), work)
    (request,) = receiver.requests
    return answers, request


def test_every_example_is_looked_at() -> None:
    known = {*CALLS, *SINGLE, *READS, *NOT_OURS, "args_hash"}
    assert {path.stem for path in EXAMPLES.glob("*.json")} == known


@pytest.mark.parametrize("name", CALLS)
def test_the_answer_to_a_call_is_understood(name: str) -> None:
    kind, expected = CALLS[name]
    answers, _ = exchange(name, kind, sent_by_us(name, expected))
    assert {key: (answer.outcome, answer.reason) for key, answer in answers.items()} == expected


def test_permitted_folders_reach_the_one_who_was_refused() -> None:
    answers, _ = exchange("batch_mixed", SEND, sent_by_us("batch_mixed", CALLS["batch_mixed"][1]))
    problem = answers["note-4"].problem
    assert problem is not None
    assert problem["permitted_folders"] == ["drafts", "published"]


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_sent_as_the_example_shows(name: str) -> None:
    kind, expected = CALLS[name]
    request = member(example(name), "request")
    _, received = exchange(name, kind, sent_by_us(name, expected))
    assert received.line == f"{request['method']} {request['path']} HTTP/1.1"
    headers = member(request, "headers")
    assert received.headers["authorization"] == f"Bearer {TOKEN}"
    assert received.headers["content-type"] == headers["Content-Type"]
    assert {header.lower() for header in headers} <= set(received.headers)
    ours = received.json()
    assert isinstance(ours, dict)
    assert list(ours) == list(member(request, "body"))
    shown = items(member(request, "body"))
    for item in items(ours):
        example_item = next(other for other in shown if other["operation_id"] == item["operation_id"])
        for name_of_member, value in example_item.items():
            assert item[name_of_member] == (str(CALL_ID) if name_of_member == "call_id" else value)
        # We may send what an example leaves out only where another one shows it.
        assert set(item) - set(example_item) <= {"args_hash", "deadline"}


@pytest.mark.parametrize("name", SINGLE)
def test_the_body_for_one_operation_is_understood_as_an_item(name: str) -> None:
    kind, outcome, reason = SINGLE[name]
    response = member(example(name), "response")
    body, status = member(response, "body"), response["status"]
    ours = Outgoing(
        id=uuid4(),
        operation_id=text(body.get("operation_id", "note-7")),
        tenant="demo",
        principal="researcher",
        kind="note.create",
        arguments="{}",
        args_hash=text(body.get("args_hash") or "0" * 64),
        deadline=DEADLINE,
    )
    replayed = "idempotent-replayed" in member(response, "headers")
    if "code" in body:
        item: Json = {"status": status, "problem": body}
    elif kind is SEND:
        item = {"status": status, "replayed": replayed, "receipt": body}
    else:
        item = body
    answer = outcomes_of_http.of_item(kind, ours, item)
    assert (answer.outcome, answer.reason) == (outcome, reason)


def read(name: str, work: Callable[[NoteService], Awaitable[object]]) -> tuple[object, Received]:
    response = member(example(name), "response")
    status = response["status"]
    assert isinstance(status, int)

    def answer(connection: Connection) -> None:
        connection.read()
        connection.reply(response["body"], status)

    with RawReceiver(answer) as receiver:
        value = run(lambda: NoteService(settings(receiver.url), tries=1), work)
    return value, receiver.requests[0]


def test_capabilities_are_read() -> None:
    value, request = read("capabilities", lambda service: service.capabilities())
    body = member(example("capabilities"), "response", "body")
    assert isinstance(value, Capabilities)
    assert (value.receiver, value.batch_items, value.batch_bytes) == (body["receiver"], 500, 8_388_608)
    assert (value.admission_window_s, value.request_limit_s) == (604_800.0, 30.0)
    assert value.tombstone_retention_s == 691_200.0
    assert request.line == "GET /v1/capabilities HTTP/1.1"


@pytest.mark.parametrize(("name", "version"), [("read_note", None), ("read_version", 1)])
def test_a_note_is_read(name: str, version: int | None) -> None:
    body = member(example(name), "response", "body")
    note_id = text(body["id"])
    value, request = read(
        name, lambda service: service.read_note(note_id, on_behalf_of=None, version=version)
    )
    assert isinstance(value, StoredNote)
    assert {field: getattr(value, field) for field in body} == body
    path = text(member(example(name), "request")["path"]).replace("{note_id}", note_id)
    assert request.line == f"GET {path} HTTP/1.1"


def test_folders_are_read() -> None:
    value, request = read("folders", lambda service: service.list_folders(on_behalf_of="demo/researcher"))
    assert value == ["drafts", "published"]
    assert request.headers["on-behalf-of"] == "demo/researcher"


def test_no_such_note_is_none_and_no_such_route_is_an_error() -> None:
    value, _ = read("note_not_found", lambda service: service.read_note("x", on_behalf_of=None))
    assert value is None
    with pytest.raises(ReadRefused, match="404 route_not_found"):
        read("route_not_found", lambda service: service.read_note("x", on_behalf_of=None))


def test_we_hash_as_the_vectors_say() -> None:
    for vector in items(example("args_hash")):
        arguments, kind = member(vector, "arguments"), text(vector["kind"])
        canonical = canonical_arguments({name: text(value) for name, value in arguments.items()})
        assert args_hash(kind, canonical) == vector["args_hash"], vector["name"]
