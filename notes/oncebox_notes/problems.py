"""Everything that is not an answer is a problem (RFC 9457): the closed set of codes and what each one says."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

Code = Literal[
    "idempotency_key_missing",
    "idempotency_key_invalid",
    "deadline_missing",
    "deadline_invalid",
    "invalid_argument",
    "unauthenticated",
    "folder_not_writable",
    "note_not_found",
    "route_not_found",
    "method_not_allowed",
    "operation_in_progress",
    "operation_sealed",
    "operation_expired",
    "precondition_failed",
    "too_large",
    "unsupported_type",
    "argument_conflict",
    "precondition_required",
    "rate_limited",
    "internal",
    "busy",
]
Attempt = Literal["executed", "replayed", "not_executed", "unknown"]
OperationState = Literal["completed", "sealed", "in_progress", "not_found", "unknown"]


@dataclass(frozen=True, slots=True)
class _Kind:
    """What every problem of one code has in common.

    `same_key`: the same request may succeed when it is sent again. `new_key`: a corrected one needs a new key.
    """

    status: int
    title: str
    state: OperationState
    same_key: bool
    new_key: bool
    attempt: Attempt = "not_executed"


KINDS: Final[dict[Code, _Kind]] = {
    "idempotency_key_missing": _Kind(400, "The idempotency key is missing", "unknown", False, True),
    "idempotency_key_invalid": _Kind(400, "The idempotency key is not valid", "unknown", False, True),
    "deadline_missing": _Kind(400, "The deadline is missing", "unknown", False, True),
    "deadline_invalid": _Kind(400, "The deadline is not valid", "unknown", False, True),
    "invalid_argument": _Kind(400, "The request is not valid", "unknown", False, True),
    "unauthenticated": _Kind(401, "The caller is not known", "unknown", True, False),
    "folder_not_writable": _Kind(403, "The folder is not writable", "not_found", True, True),
    "note_not_found": _Kind(404, "There is no such note", "not_found", True, True),
    "route_not_found": _Kind(404, "There is no such endpoint", "unknown", False, False),
    "method_not_allowed": _Kind(405, "The endpoint does not have this method", "unknown", False, False),
    "operation_in_progress": _Kind(409, "The operation is being executed", "in_progress", True, False),
    "operation_sealed": _Kind(409, "The operation is sealed", "sealed", False, True),
    "operation_expired": _Kind(410, "The operation's deadline has passed", "not_found", False, True),
    "precondition_failed": _Kind(412, "The note has changed", "not_found", False, True),
    "too_large": _Kind(413, "The request is too large", "unknown", False, True),
    "unsupported_type": _Kind(415, "The content type is not supported", "unknown", True, False),
    "argument_conflict": _Kind(422, "The key belongs to other arguments", "unknown", False, True),
    "precondition_required": _Kind(428, "The request needs a precondition", "unknown", False, True),
    "rate_limited": _Kind(429, "Too many operations", "unknown", True, False),
    "internal": _Kind(500, "The service failed", "unknown", True, False, attempt="unknown"),
    "busy": _Kind(503, "The service is busy", "unknown", True, False),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a request: `path` says where, `message` what and what to do about it."""

    code: Code
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. `retry_after` in whole seconds; `state` only where it differs from the code's own."""

    code: Code
    detail: str
    state: OperationState | None = None
    retry_after: int | None = None
    errors: Sequence[Fault] = ()
    permitted_folders: Sequence[str] | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def status(self) -> int:
        return KINDS[self.code].status

    @property
    def operation_state(self) -> OperationState:
        return self.state or KINDS[self.code].state

    def body(self) -> dict[str, object]:
        """The members of the problem document, in their fixed order."""
        kind = KINDS[self.code]
        body: dict[str, object] = {
            "type": f"urn:oncebox:problem:{self.code}",
            "title": kind.title,
            "status": kind.status,
            "detail": self.detail,
            "code": self.code,
            "attempt": kind.attempt,
            "operation_state": self.operation_state,
            "retry": {"same_key": kind.same_key, "new_key": kind.new_key, "after_s": self.retry_after},
            "errors": [{"path": fault.path, "message": fault.message} for fault in self.errors],
        }
        if self.permitted_folders is not None:
            body["permitted_folders"] = list(self.permitted_folders)
        return body


class RefusalError(Exception):
    """Ends the handling of a request with a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem: Final = problem


def from_faults(faults: Sequence[Fault]) -> Problem:
    """One problem for all faults; the first decides the code, and size does only where nothing else is wrong."""
    first = next((fault for fault in faults if fault.code != "too_large"), faults[0])
    detail = "; ".join(f"{fault.path} {fault.message}" for fault in faults[:5])
    return Problem(first.code, f"Correct this and send it under a new key: {detail}.", errors=faults)


def in_progress() -> Problem:
    return Problem(
        "operation_in_progress",
        "Another request with this key is being executed. Ask for the operation's status, or send the same"
        " request again after the given time.",
        retry_after=1,
    )


def busy(reason: str, state: OperationState | None = None) -> Problem:
    return Problem(
        "busy",
        f"Nothing was executed: {reason}. Send the same request again after the given time.",
        state=state,
        retry_after=1,
    )


def internal() -> Problem:
    return Problem(
        "internal",
        "It is not known whether the operation was executed. Ask for its status; sending it again with the same"
        " key is safe.",
    )
