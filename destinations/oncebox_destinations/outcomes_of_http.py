"""What one answer means for one operation: the table of outcomes, pure.

The rule behind it: a definite outcome needs a whole answer that says so in the words of the wire. Everything
else that began is UNKNOWN, and NOT_SENT needs the client's trace.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from oncebox_destinations import retry_after
from oncebox_destinations.exchange import Reply
from oncebox_destinations.reasons import Reason
from oncebox_destinations.receipts import Malformed, read_receipt
from oncebox_destinations.received_json import Garbage, Object, evidence, is_integer, is_object, parse_object
from oncebox_destinations.transport_failures import Failure
from oncebox_models.calls import Outgoing
from oncebox_models.outcomes import Answer, Outcome, Receipt
from oncebox_models.states import CallKind

_CODE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")

_OUTCOMES: Final[Mapping[tuple[int, str], Outcome]] = {
    (400, "idempotency_key_missing"): Outcome.REFUSED,
    (400, "idempotency_key_invalid"): Outcome.REFUSED,
    (400, "deadline_missing"): Outcome.REFUSED,
    (400, "deadline_invalid"): Outcome.REFUSED,
    (400, "invalid_argument"): Outcome.REFUSED,
    (401, "unauthenticated"): Outcome.UNAUTHENTICATED,
    (403, "folder_not_writable"): Outcome.REFUSED,
    (404, "note_not_found"): Outcome.REFUSED,
    (409, "operation_in_progress"): Outcome.IN_PROGRESS,
    (409, "operation_sealed"): Outcome.SEALED,
    (410, "operation_expired"): Outcome.GONE,
    (412, "precondition_failed"): Outcome.REFUSED,
    (413, "too_large"): Outcome.REFUSED,
    (415, "unsupported_type"): Outcome.REFUSED,
    (422, "argument_conflict"): Outcome.CONFLICT,
    (428, "precondition_required"): Outcome.REFUSED,
    (429, "rate_limited"): Outcome.NOT_EXECUTED,
    (503, "busy"): Outcome.NOT_EXECUTED,
}
"""Status and code decide together: a proxy's 403 is not our receiver's. What is not here is UNKNOWN."""

_NEEDS_NOT_EXECUTED: Final = frozenset(
    {Outcome.REFUSED, Outcome.GONE, Outcome.UNAUTHENTICATED, Outcome.NOT_EXECUTED}
)
"""Verdicts on this one request: they hold only with `attempt: not_executed`. The others speak of the key."""

_OF_A_WHOLE_REQUEST: Final = frozenset({Outcome.REFUSED, Outcome.UNAUTHENTICATED, Outcome.NOT_EXECUTED})
"""What a problem without an operation can mean. A proof names its key, so it cannot come this way."""


def of_failure(failure: Failure) -> Answer:
    """No whole answer: not sent, or unknown, for every operation of the request."""
    return Answer(Outcome.UNKNOWN if failure.began else Outcome.NOT_SENT, failure.reason)


def of_item(kind: CallKind, operation: Outgoing, item: Object) -> Answer:
    """One item of a whole answer, found by its key. `kind` is SEND, STATUS or SEAL."""
    if item.get("problem") is not None:
        return _of_item_problem(kind, item)
    if kind is CallKind.SEND:
        return _of_sent(operation, item)
    return _of_state(operation, item)


def of_whole_request(kind: CallKind, reply: Reply, *, operations: int, after_s: float | None) -> Answer:
    """A problem, or no sense at all, instead of items: the same for each of the request's `operations`.

    A refusal of a request with more than one operation is nobody's refusal: it may be one item's fault. Such
    operations are NOT_EXECUTED, BATCH_TOO_LARGE or BATCH_REFUSED: the caller sends them alone the next time.
    """
    try:
        problem = parse_object(reply.body)
    except Garbage:
        return Answer(Outcome.UNKNOWN, _status_reason(reply.status), http_status=reply.status)
    answer = _of_problem(kind, reply.status, problem, after_s)
    if answer.outcome not in _OF_A_WHOLE_REQUEST:
        return replace(answer, outcome=Outcome.UNKNOWN)
    if answer.outcome is Outcome.REFUSED and operations > 1:
        reason = Reason.BATCH_TOO_LARGE if reply.status == 413 else Reason.BATCH_REFUSED
        return replace(answer, outcome=Outcome.NOT_EXECUTED, reason=reason)
    return answer


def unknown(reason: str, http_status: int | None) -> Answer:
    """A whole answer that leaves it open."""
    return Answer(Outcome.UNKNOWN, reason, http_status=http_status)


def _of_sent(operation: Outgoing, item: Object) -> Answer:
    status = _status(item)
    if status not in (200, 201):
        return unknown(Reason.MALFORMED_ITEM, status)
    reason = Reason.REPLAYED if item.get("replayed") is True else Reason.CREATED
    return _of_receipt(operation, item.get("receipt"), reason, status)


def _of_state(operation: Outgoing, item: Object) -> Answer:
    match item.get("state"):
        case "completed":
            return _of_receipt(operation, item, Reason.COMPLETED, 200)
        case "sealed":
            return Answer(Outcome.SEALED, Reason.SEALED, http_status=200)
        case "in_progress":
            return Answer(Outcome.IN_PROGRESS, Reason.IN_PROGRESS, http_status=200)
        case "not_found":
            return Answer(Outcome.NOT_FOUND, Reason.NOT_FOUND, http_status=200)
        case _:
            return unknown(Reason.MALFORMED_ITEM, 200)


def _of_receipt(operation: Outgoing, value: object, reason: Reason, status: int) -> Answer:
    try:
        receipt = read_receipt(value)
    except Malformed:
        return unknown(Reason.MALFORMED_RECEIPT, status)
    if receipt.operation_id != operation.operation_id:
        return _foreign(receipt, status)
    if receipt.args_hash != operation.args_hash:
        return Answer(Outcome.CONFLICT, Reason.OTHER_HASH, problem=_received(receipt), http_status=status)
    return Answer(Outcome.RECEIPT, reason, receipt=receipt, http_status=status)


def _foreign(receipt: Receipt, status: int) -> Answer:
    # Not as `receipt`: nothing may settle on it. As evidence for the violation that is raised.
    return Answer(Outcome.UNKNOWN, Reason.FOREIGN_RECEIPT, problem=_received(receipt), http_status=status)


def _received(receipt: Receipt) -> Object:
    return {
        "received": {
            "operation_id": receipt.operation_id,
            "args_hash": receipt.args_hash,
            "note": dict(receipt.note),
        }
    }


def _of_item_problem(kind: CallKind, item: Object) -> Answer:
    status, problem = _status(item), item["problem"]
    if status is None or not is_object(problem):
        return unknown(Reason.MALFORMED_ITEM, status)
    return _of_problem(kind, status, problem, None)


def _status(item: Object) -> int | None:
    status = item.get("status")
    return status if is_integer(status) and 100 <= status <= 599 else None


def _of_problem(kind: CallKind, status: int, problem: Object, after_s: float | None) -> Answer:
    reason = _code(status, problem) or _status_reason(status)
    outcome = _OUTCOMES.get((status, reason), Outcome.UNKNOWN)
    if outcome in _NEEDS_NOT_EXECUTED and problem.get("attempt") != "not_executed":
        outcome = Outcome.UNKNOWN
    if kind is not CallKind.SEND and outcome in (Outcome.REFUSED, Outcome.GONE):
        # The question was refused, not the write: this says nothing of the operation.
        outcome = Outcome.UNKNOWN
    waits = retry_after.from_problem(problem) if after_s is None else after_s
    return Answer(outcome, reason, problem=evidence(problem), retry_after_s=waits, http_status=status)


def _code(status: int, problem: Object) -> str | None:
    """The problem's code, if it is one and the problem speaks of this status."""
    code = problem.get("code")
    if isinstance(code, str) and _CODE.fullmatch(code) and problem.get("status") == status:
        return code
    return None


def _status_reason(status: int) -> str:
    return Reason.GARBAGE if status == 200 else f"http_{status}"
