"""Endpoints about notes: create, revise, a batch of both, read, look up by operation."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from fastapi import APIRouter, Request, Response

from oncebox_notes import (
    answers,
    arguments,
    execution,
    intake,
    openapi,
    problems,
    reading,
    service,
    syntax,
    transport,
    writing,
)
from oncebox_notes.arguments import Kind
from oncebox_notes.database import Stopwatch
from oncebox_notes.identity import Identity
from oncebox_notes.intake import Intake
from oncebox_notes.operations import Key, Operation, Outcome
from oncebox_notes.problems import Fault, Problem, RefusalError
from oncebox_notes.service import Service
from oncebox_notes.strict_json import Json

router: Final = APIRouter(tags=["notes"])


@router.post("/v1/notes", **openapi.CREATE)
async def create_note(request: Request) -> Response:
    """Create a note under an idempotency key."""
    served, watch = service.of(request), service.of(request).watch()
    transport.check_headers(request, served.settings.body_max_bytes)
    context = await served.authenticate(request)
    body = await served.read_json(request)
    operation = _single(request, context, "note.create", body, [])
    return await _respond(served, context, operation, watch)


@router.put("/v1/notes/{note_id}", **openapi.REVISE)
async def revise_note(request: Request, note_id: openapi.NoteIdInPath) -> Response:
    """Make a new version of a note, if it still is the one that was read."""
    served, watch = service.of(request), service.of(request).watch()
    transport.check_headers(request, served.settings.body_max_bytes)
    context = await served.authenticate(request)
    body = await served.read_json(request)
    faults: list[Fault] = []
    operation = _single(request, context, "note.revise", _revision(request, note_id, body, faults), faults)
    return await _respond(served, context, operation, watch)


@router.post("/v1/notes:batch", **openapi.BATCH)
async def batch(request: Request) -> Response:
    """Create and revise many notes; each item has its own key, outcome and, if need be, problem."""
    served, watch = service.of(request), service.of(request).watch()
    transport.check_headers(request, served.settings.body_max_bytes)
    context = await served.authenticate(request)
    body = await served.read_json(request)
    items = intake.batch(context, intake.items(body, "items", served.settings.batch_max_items))
    operations = [item.wanted for item in items if isinstance(item.wanted, Operation)]
    service.entry_of(request).about([operation.key for operation in operations], len(items))
    served.admit(context.caller, len(items))
    outcomes: Mapping[Key, Outcome] = {}
    if operations:
        work = writing.execute_set(served.pool, operations, context.caller.token_id, watch)
        outcomes = await served.unbroken(work)
    answered: list[dict[str, object]] = []
    for item in items:
        outcome = outcomes[item.wanted.key] if isinstance(item.wanted, Operation) else item.wanted
        served.metrics.outcome(outcome)
        answered.append(answers.batch_item(item.operation_id, outcome))
    return answers.document({"items": answered})


@router.get("/v1/notes", **openapi.LOOK_UP)
async def notes_of_operation(request: Request) -> Response:
    """The notes that an operation made, without their text."""
    served = service.of(request)
    context = await served.authenticate(request, ("operation",))
    reader = acting(context)
    values = context.query.get("operation")
    fault = intake.key_fault(values, "query operation")
    if fault or values is None:
        raise RefusalError(problems.from_faults([fault] if fault else []))
    key = Key(reader, values)
    service.entry_of(request).about([key], 1)
    found = await reading.notes_of(served.pool, key)
    return answers.document({"notes": [answers.note_ref(note) for note in found]})


@router.get("/v1/notes/{note_id}", **openapi.READ)
async def read_note(request: Request, note_id: openapi.NoteIdInPath) -> Response:
    """A note with its text: the latest version, or the one that is asked for."""
    served = service.of(request)
    context = await served.authenticate(request, ("version",))
    reader = acting(context)
    service.entry_of(request).principal = str(reader)
    version = _version(context.query.get("version"))
    parsed = arguments.parse_note_id(note_id)
    note = await reading.note(served.pool, reader, parsed, version) if parsed else None
    if note is None:
        raise RefusalError(execution.note_not_found())
    headers = {
        "ETag": f'"{note.ref.etag}"',
        "Content-Location": f"{answers.location(note.ref)}?version={note.ref.version}",
    }
    return answers.document(answers.note_body(note), headers=headers)


def acting(context: Intake) -> Identity:
    """The principal of a request for one; raises `RefusalError`."""
    found = intake.owner(context, None, "header On-Behalf-Of")
    if isinstance(found, Problem):
        raise RefusalError(found)
    if isinstance(found, Fault):
        raise RefusalError(problems.from_faults([found]))
    return found


def deadline_header(request: Request, context: Intake, faults: list[Fault]) -> datetime | None:
    """The deadline of a request for one; what is wrong with it is added to `faults`."""
    path = "header Operation-Deadline"
    sent = transport.single_header(request, "operation-deadline")
    if isinstance(sent, Fault):
        faults.append(Fault("deadline_invalid", path, sent.message))
        return None
    if sent is None:
        faults.append(Fault("deadline_missing", path, "is required: an RFC 3339 time"))
        return None
    checked = syntax.check_deadline(sent, path, context.now, context.settings.admission_window_seconds)
    if isinstance(checked, Fault):
        faults.append(checked)
        return None
    return checked


def _key_header(request: Request, faults: list[Fault]) -> str | None:
    path = "header Idempotency-Key"
    sent = transport.single_header(request, "idempotency-key")
    if isinstance(sent, Fault):
        faults.append(Fault("idempotency_key_invalid", path, sent.message))
        return None
    if sent is None:
        faults.append(Fault("idempotency_key_missing", path, f"is required: {syntax.KEY_RULE}"))
        return None
    key = syntax.key_in_header(sent)
    if key is None:
        faults.append(Fault("idempotency_key_invalid", path, f"must be {syntax.KEY_RULE}"))
    return key


def _single(request: Request, context: Intake, kind: Kind, value: Json, later: Sequence[Fault]) -> Operation:
    """The operation of a request for one, or a refusal with all its faults: headers first, then arguments."""
    owner = acting(context)
    faults: list[Fault] = []
    key = _key_header(request, faults)
    if key is not None:
        service.entry_of(request).about([Key(owner, key)], 1)
    service.entry_of(request).principal = str(owner)
    deadline = deadline_header(request, context, faults)
    faults += later
    wanted = None if later else arguments.parse(kind, value, context.settings.note_max_bytes, "", faults)
    if faults or key is None or deadline is None or wanted is None:
        problem = problems.from_faults(faults)
        service.of(request).metrics.outcome(problem)
        raise RefusalError(problem)
    return Operation(Key(owner, key), context.call_id, deadline, wanted)


def _revision(request: Request, note_id: str, body: Json, faults: list[Fault]) -> Json:
    """The arguments of a revision as they are hashed: path and `If-Match` belong to them."""
    content = arguments.closed_object(body, ("title", "text"), ("format",), "the body", faults)
    sent = transport.single_header(request, "if-match")
    path = "header If-Match"
    if sent is None:
        faults.append(
            Fault("precondition_required", path, "is required: the ETag of the version that you have read")
        )
        return None
    tag = syntax.parse_tag(sent) if isinstance(sent, str) else None
    if tag is None:
        faults.append(
            Fault(
                "invalid_argument", path, 'must be exactly one strong entity tag, e.g. "1-0123456789abcdef"'
            )
        )
        return None
    return {"note_id": note_id, "if_match": tag, **content}


async def _respond(served: Service, context: Intake, operation: Operation, watch: Stopwatch) -> Response:
    served.admit(context.caller, 1)
    try:
        outcomes = await served.unbroken(
            writing.execute(served.pool, [operation], context.caller.token_id, watch, wait=True)
        )
        outcome = outcomes[operation.key]
    except RefusalError as refusal:
        outcome = refusal.problem
    served.metrics.outcome(outcome)
    if isinstance(outcome, Problem):
        return answers.problem(outcome)
    return answers.completed(outcome)


def _version(value: str | None) -> int | None:
    if value is None:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > 9 or int(value) < 1:
        fault = Fault("invalid_argument", "query version", "must be a whole number from 1")
        raise RefusalError(problems.from_faults([fault]))
    return int(value)
