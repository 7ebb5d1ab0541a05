"""What a worker can be told of its call, read as the product's own client reads it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any, Final
from uuid import UUID

from oncebox_destinations.outcomes_of_http import of_failure, of_item
from oncebox_destinations.reasons import Reason
from oncebox_destinations.transport_failures import Failure
from oncebox_models.calls import Outgoing
from oncebox_models.outcomes import Answer, Outcome, Receipt
from oncebox_models.states import CallKind
from tests.proof.model.rows import HASH

KEY: Final = "note-7"
OTHER_HASH: Final = "b" * 64
OUTGOING: Final = Outgoing(
    UUID(int=7), KEY, "demo", "researcher", "note.create", "{}", HASH, datetime(2026, 1, 4, tzinfo=UTC)
)


class Reply(StrEnum):
    """What comes back for one call. The first group is said by the receiver's record of the key."""

    RECEIPT = "the receipt"
    OTHER_ARGUMENTS = "that the key is held for other arguments"
    SEALED = "sealed"
    REFUSED = "403"
    EXPIRED = "410"
    NOT_FOUND = "not_found"

    BUSY = "409 in progress"
    TURNED_AWAY = "429"
    UNAUTHENTICATED = "401"
    FOREIGN = "a receipt for another key"
    LOST = "no answer"
    NEVER_BEGAN = "a connection that is refused"


_NOTE: Final = {
    "id": "n-1",
    "folder": "drafts",
    "version": 1,
    "etag": "1-a",
    "location": "/v1/notes/n-1",
    "created_at": "2026-01-01T00:00:00Z",
}


def _problem(status: int, code: str) -> dict[str, Any]:
    problem = {"status": status, "code": code, "attempt": "not_executed", "detail": "in words"}
    return {"operation_id": KEY, "status": status, "problem": problem}


def _receipt(kind: CallKind, key: str, args_hash: str) -> dict[str, Any]:
    told: dict[str, Any] = {"operation_id": key, "args_hash": args_hash, "note": _NOTE}
    if kind is CallKind.SEND:
        return {"operation_id": KEY, "status": 201, "replayed": False, "receipt": told}
    return {"state": "completed", "as_of": "2026-01-01T00:00:00Z"} | told


def _state(name: str) -> dict[str, Any]:
    return {"operation_id": KEY, "state": name, "as_of": "2026-01-01T00:00:00Z"}


_ITEMS: Final[Mapping[CallKind, Mapping[Reply, dict[str, Any]]]] = {
    CallKind.SEND: {
        Reply.RECEIPT: _receipt(CallKind.SEND, KEY, HASH),
        Reply.OTHER_ARGUMENTS: _problem(422, "argument_conflict"),
        Reply.SEALED: _problem(409, "operation_sealed"),
        Reply.REFUSED: _problem(403, "folder_not_writable"),
        Reply.EXPIRED: _problem(410, "operation_expired"),
        Reply.BUSY: _problem(409, "operation_in_progress"),
        Reply.TURNED_AWAY: _problem(429, "rate_limited"),
        Reply.UNAUTHENTICATED: _problem(401, "unauthenticated"),
        Reply.FOREIGN: _receipt(CallKind.SEND, "note-8", HASH),
    },
    CallKind.STATUS: {
        Reply.RECEIPT: _receipt(CallKind.STATUS, KEY, HASH),
        Reply.OTHER_ARGUMENTS: _receipt(CallKind.STATUS, KEY, OTHER_HASH),
        Reply.SEALED: _state("sealed"),
        Reply.NOT_FOUND: _state("not_found"),
        Reply.BUSY: _state("in_progress"),
        Reply.TURNED_AWAY: _problem(429, "rate_limited"),
        Reply.UNAUTHENTICATED: _problem(401, "unauthenticated"),
        Reply.FOREIGN: _receipt(CallKind.STATUS, "note-8", HASH),
    },
    CallKind.SEAL: {
        Reply.RECEIPT: _receipt(CallKind.SEAL, KEY, HASH),
        Reply.OTHER_ARGUMENTS: _receipt(CallKind.SEAL, KEY, OTHER_HASH),
        Reply.SEALED: _state("sealed"),
        Reply.BUSY: _problem(409, "operation_in_progress"),
        Reply.TURNED_AWAY: _problem(429, "rate_limited"),
        Reply.UNAUTHENTICATED: _problem(401, "unauthenticated"),
        Reply.FOREIGN: _receipt(CallKind.SEAL, "note-8", HASH),
    },
}

_UNCOMPARED: Final = {(CallKind.SEND, Reply.FOREIGN), (CallKind.SEAL, Reply.OTHER_ARGUMENTS)}
"""Handed on as they came, as by a client that compares nothing: the outbox compares once more."""


@cache
def answer(kind: CallKind, reply: Reply) -> Answer:
    """The answer to a call of `kind`, as the client reads `reply`."""
    if reply is Reply.LOST:
        return of_failure(Failure(began=True, reason=Reason.DISCONNECT))
    if reply is Reply.NEVER_BEGAN:
        return of_failure(Failure(began=False, reason=Reason.CONNECT_REFUSED))
    if (kind, reply) in _UNCOMPARED:
        key, args_hash = (KEY, OTHER_HASH) if reply is Reply.OTHER_ARGUMENTS else ("note-8", HASH)
        return Answer(Outcome.RECEIPT, Reason.CREATED, Receipt(key, args_hash, _NOTE))
    return of_item(kind, OUTGOING, _ITEMS[kind][reply])


def replies(kind: CallKind) -> tuple[Reply, ...]:
    """All that a call of `kind` can be told."""
    return (*_ITEMS[kind], Reply.LOST, Reply.NEVER_BEGAN)
