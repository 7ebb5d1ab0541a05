"""The states an operation can be in, and every arrow between them.

`ARROWS` is the one transition table: the drawing in `docs/state_machine.md` and the tests are checked
against it. A state is never stored while an operation is live; it is derived from the outbox entry (see
`oncebox_outbox.statements.STATE`), so that a lapsed lease reads as `unknown` with no process to say so.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final as Constant


class State(StrEnum):
    """What is known of an operation. In: how a row gets there. Out: what moves it on."""

    PENDING = "pending"
    """Committed; nothing was sent. In: enqueue, or a call that never began. Out: a claim, a cancel, expiry."""
    SENDING = "sending"
    """A call is under way, and none before it is in doubt. In: a claim. Out: its answer, or its lease running out."""
    RETRYING = "retrying"
    """Not confirmed; every call so far was answered "not executed". Out: the next claim."""
    UNKNOWN = "unknown"
    """May or may not be saved: an earlier call is without a verdict. Stays so while the receiver is asked, asked to
    seal, or sent the same key again. Out: an answer that is a proof, or a late one that takes the doubt away."""
    SAVED = "saved"
    """The receipt is held. Final."""
    REFUSED = "refused"
    """The receiver said no and sealed it: never will be saved under this id. Final."""
    NOT_SAVED = "not_saved"
    """Cancelled, expired or given up, with proof: never will be. Final."""
    NEEDS_REVIEW = "needs_review"
    """No machine can tell. Evidence is kept; its ordering key is blocked until a person decides."""


FINAL_STATES: Constant = frozenset({State.SAVED, State.REFUSED, State.NOT_SAVED, State.NEEDS_REVIEW})
DEFINITE_STATES: Constant = frozenset({State.SAVED, State.REFUSED, State.NOT_SAVED})
LIVE_STATES: Constant = frozenset(State) - FINAL_STATES


class Wanted(StrEnum):
    """What is to become of a live operation."""

    DELIVER = "deliver"
    """Send until a receipt is held."""
    ABANDON = "abandon"
    """Only seal from now on; ends as `not_saved`, or `saved` if the receiver had it after all."""
    REFUSE = "refuse"
    """The receiver refused; only seal from now on; ends as `refused`, or `saved` likewise."""


class CallKind(StrEnum):
    """What one request to a receiver asks for."""

    SEND = "send"
    STATUS = "status"
    SEAL = "seal"
    VERIFY = "verify"


class Reason(StrEnum):
    """Why an operation ended, where the receiver's own problem code does not say it."""

    CANCELLED = "cancelled"
    EXPIRED = "expired"
    BUDGET_SPENT = "budget_spent"
    ARGUMENT_CONFLICT = "argument_conflict"
    POISON = "poison"
    ACCESS_LOST = "access_lost"
    RECEIVER_CANNOT_TELL = "receiver_cannot_tell"
    RECEIVER_NEVER_SEEN = "receiver_never_seen"
    """Not an end: why a pending operation is not sent. No worker has reached its receiver yet."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """One allowed move: from `source` (None: not yet there) by `event` to `target`."""

    source: State | None
    event: str
    target: State


NOTHING_EVER_SENT: Constant = "cancel or deadline, nothing ever sent"
"""The event of the fourth proof: it needs no receiver."""

ARROWS: Constant = (
    Arrow(None, "enqueue", State.PENDING),
    Arrow(State.PENDING, "claim", State.SENDING),
    Arrow(State.PENDING, NOTHING_EVER_SENT, State.NOT_SAVED),
    Arrow(State.SENDING, "receipt", State.SAVED),
    Arrow(State.SENDING, "sealed, after a refusal", State.REFUSED),
    Arrow(State.SENDING, "key held for other arguments", State.REFUSED),
    Arrow(State.SENDING, "sealed, as we asked", State.NOT_SAVED),
    Arrow(State.SENDING, "call never began, nothing ever sent", State.PENDING),
    Arrow(State.SENDING, "answered: not executed", State.RETRYING),
    Arrow(State.SENDING, "a seal without an answer, no send in doubt", State.RETRYING),
    Arrow(State.SENDING, "no verdict, or the lease ran out", State.UNKNOWN),
    Arrow(State.SENDING, "access lost", State.NEEDS_REVIEW),
    Arrow(State.RETRYING, "claim", State.SENDING),
    Arrow(State.RETRYING, "claimed again and again without an outcome", State.NEEDS_REVIEW),
    Arrow(State.UNKNOWN, "receipt", State.SAVED),
    Arrow(State.UNKNOWN, "sealed, after a refusal", State.REFUSED),
    Arrow(State.UNKNOWN, "key held for other arguments", State.REFUSED),
    Arrow(State.UNKNOWN, "sealed, as we asked", State.NOT_SAVED),
    Arrow(State.UNKNOWN, "access lost", State.NEEDS_REVIEW),
    Arrow(State.UNKNOWN, "claimed again and again without an outcome", State.NEEDS_REVIEW),
    # A lease ran out and nobody took over: the answer of that call still counts when it comes.
    Arrow(State.UNKNOWN, "late answer: call never began, nothing ever sent", State.PENDING),
    Arrow(State.UNKNOWN, "late answer: not executed", State.RETRYING),
    # A stale call's receipt, or the late answer of a seal.
    Arrow(State.RETRYING, "receipt of an earlier call", State.SAVED),
    Arrow(
        State.RETRYING, "late answer: sealed after a refusal, or key held for other arguments", State.REFUSED
    ),
    Arrow(State.RETRYING, "late answer: sealed as we asked", State.NOT_SAVED),
    Arrow(State.RETRYING, "late answer: access lost", State.NEEDS_REVIEW),
    Arrow(State.NEEDS_REVIEW, "receipt, or access is back", State.SAVED),
    Arrow(State.NEEDS_REVIEW, "access is back, sealed after a refusal", State.REFUSED),
    Arrow(State.NEEDS_REVIEW, "access is back, sealed as we asked", State.NOT_SAVED),
    Arrow(State.NEEDS_REVIEW, "access is back, no send in doubt", State.RETRYING),
    Arrow(State.NEEDS_REVIEW, "access is back, a send in doubt", State.UNKNOWN),
)


def may(source: State, target: State) -> bool:
    """Whether what reads as `source` may next read as `target`. To stay is no move."""
    return source is target or any((arrow.source, arrow.target) == (source, target) for arrow in ARROWS)


def sources(event: str) -> list[State]:
    """The states that `event` leads out of, sorted."""
    return sorted(arrow.source for arrow in ARROWS if arrow.event == event and arrow.source is not None)
