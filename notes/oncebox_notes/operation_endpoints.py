"""Endpoints about keys: their state, and the promise never to execute them."""

from collections.abc import Mapping
from typing import Final

from fastapi import APIRouter, Request, Response

from oncebox_notes import answers, intake, openapi, problems, reading, sealing, service, transport
from oncebox_notes.note_endpoints import acting, deadline_header
from oncebox_notes.operations import Key, KeyState, SealRequest
from oncebox_notes.problems import Fault, Problem, RefusalError

router: Final = APIRouter(tags=["operations"])


@router.post("/v1/operations:status", **openapi.STATUS_MANY)
async def status_of_many(request: Request) -> Response:
    """The state of many keys. `not_found` proves nothing: a request may still be on its way."""
    served = service.of(request)
    transport.check_headers(request, served.settings.body_max_bytes)
    context = await served.authenticate(request)
    body = await served.read_json(request)
    items = intake.status_keys(context, intake.items(body, "operations", served.settings.batch_max_items))
    keys = [item.wanted for item in items if isinstance(item.wanted, Key)]
    service.entry_of(request).about(keys, len(items))
    states = {state.key: state for state in await reading.key_states(served.pool, list(dict.fromkeys(keys)))}
    answered = [
        answers.asked_item(
            item.operation_id, states[item.wanted] if isinstance(item.wanted, Key) else item.wanted
        )
        for item in items
    ]
    as_of = max((state.as_of for state in states.values()), default=context.now)
    return answers.document({"as_of": answers.format_moment(as_of), "items": answered})


@router.post("/v1/operations:seal", **openapi.SEAL_MANY)
async def seal_many(request: Request) -> Response:
    """Seal many keys; one that is completed already answers with its note."""
    served = service.of(request)
    transport.check_headers(request, served.settings.body_max_bytes)
    context = await served.authenticate(request)
    body = await served.read_json(request)
    items = intake.seals(context, intake.items(body, "items", served.settings.batch_max_items))
    wanted = [item.wanted for item in items if isinstance(item.wanted, SealRequest)]
    service.entry_of(request).about([request_.key for request_ in wanted], len(items))
    served.admit(context.caller, len(items))
    states: Mapping[Key, KeyState | Problem] = {}
    if wanted:
        states = await served.unbroken(
            sealing.seal(served.pool, wanted, served.settings.lock_timeout_seconds)
        )
    answered = [
        answers.asked_item(
            item.operation_id,
            states[item.wanted.key] if isinstance(item.wanted, SealRequest) else item.wanted,
        )
        for item in items
    ]
    return answers.document({"items": answered})


@router.post("/v1/operations/{key}:seal", **openapi.SEAL)
async def seal(request: Request, key: openapi.KeyInPath) -> Response:
    """Seal one key. It takes no body."""
    served = service.of(request)
    context = await served.authenticate(request)
    transport.refuse_body(request)
    owner = acting(context)
    faults: list[Fault] = []
    fault = intake.key_fault(key, "path key")
    if fault:
        faults.append(fault)
    deadline = deadline_header(request, context, faults)
    if faults or deadline is None:
        raise RefusalError(problems.from_faults(faults))
    served.admit(context.caller, 1)
    wanted = SealRequest(Key(owner, key), deadline, None)
    service.entry_of(request).about([wanted.key], 1)
    service.entry_of(request).principal = str(owner)
    states = await served.unbroken(sealing.seal(served.pool, [wanted], served.settings.lock_timeout_seconds))
    return _state(states[wanted.key])


@router.get("/v1/operations/{key}", **openapi.STATUS)
async def status(request: Request, key: openapi.KeyInPath) -> Response:
    """The state of one key. `not_found` proves nothing: a request may still be on its way."""
    served = service.of(request)
    context = await served.authenticate(request)
    owner = acting(context)
    fault = intake.key_fault(key, "path key")
    if fault:
        raise RefusalError(problems.from_faults([fault]))
    asked = Key(owner, key)
    service.entry_of(request).about([asked], 1)
    service.entry_of(request).principal = str(owner)
    return _state((await reading.key_states(served.pool, [asked]))[0])


def _state(found: KeyState | Problem) -> Response:
    if isinstance(found, Problem):
        return answers.problem(found)
    return answers.document(answers.key_state(found), headers={"Operation-State": found.state})
