"""The sender's two rows of one operation as one value, and what the statements do to it.

Each function is named like the statement in `oncebox_outbox.statements` that it mirrors, and
`test_statements_mirror.py` runs both. None means that the statement touches no row. Time is left out but for what it
decides: whether a lease lives, and whether the deadline has passed by the sender's clock (`late`).
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from oncebox_models.outcomes import Answer, Outcome
from oncebox_models.states import NOTHING_EVER_SENT, CallKind, Reason, State, Wanted, sources
from oncebox_outbox.policy import Policy
from oncebox_outbox.rules import Again, Claimed, Settle

HASH: Final = "a" * 64


class Lease(StrEnum):
    """Whether a call holds the entry, by the sender's clock."""

    NONE = "none"
    LIVE = "live"
    LAPSED = "lapsed"


@dataclass(frozen=True, slots=True)
class Row:
    """`operation` and its `outbox_entry`, while it has one. The defaults are an operation as enqueued.

    call: whose lease it is, by a name. receipt: whether one is held.
    """

    attempts: int = 0
    unanswered: int = 0
    claims: int = 0
    retries: int = 0
    next_call: CallKind = CallKind.SEND
    wanted: Wanted = Wanted.DELIVER
    wanted_reason: str | None = None
    review: str | None = None
    call: str | None = None
    calling: CallKind | None = None
    lease: Lease = Lease.NONE
    last_outcome: str | None = None
    final: State | None = None
    reason: str | None = None
    receipt: bool = False


class Unstorable(Exception):
    """The table's constraints refuse the row: the statement fails, and nothing happens."""


@dataclass(frozen=True, slots=True)
class ClaimedRow:
    """What a claim brought: the row as it is now, and what the worker was told."""

    row: Row
    kind: CallKind
    entry: Claimed


def state(row: Row) -> State:
    """`STATE`."""
    if row.final is not None:
        return row.final
    if row.review is not None:
        return State.NEEDS_REVIEW
    live = row.lease is Lease.LIVE
    if row.unanswered > int(row.calling is CallKind.SEND and live):
        return State.UNKNOWN
    if live:
        return State.SENDING
    return State.RETRYING if row.attempts > 0 else State.PENDING


def unsent(row: Row) -> bool:
    """`UNSENT`."""
    return state(row) in sources(NOTHING_EVER_SENT)


def next_call(row: Row, *, late: bool) -> CallKind:
    """`NEXT_CALL`."""
    return CallKind.SEAL if row.wanted is not Wanted.DELIVER or late else row.next_call


def claim(row: Row, call: str, policy: Policy, *, late: bool) -> ClaimedRow | None:
    """`CLAIM`, of an entry that is due, at the head of its ordering key, and alone in its message."""
    if row.final is not None or row.lease is Lease.LIVE or row.claims >= policy.poison_claims:
        return None
    if row.attempts == 0 and (late or row.wanted is not Wanted.DELIVER):
        return None
    kind = next_call(row, late=late)
    send = int(kind is CallKind.SEND)
    expired = row.wanted is Wanted.DELIVER and kind is CallKind.SEAL
    claimed = stored(
        replace(
            row,
            call=call,
            calling=kind,
            lease=Lease.LIVE,
            claims=row.claims + 1,
            attempts=row.attempts + send,
            unanswered=row.unanswered + send,
            next_call=CallKind.STATUS if send else kind,
            wanted=Wanted.ABANDON if expired else row.wanted,
            wanted_reason=Reason.EXPIRED if expired else row.wanted_reason,
        )
    )
    return ClaimedRow(claimed, kind, claimed_values(claimed))


def claimed_values(row: Row) -> Claimed:
    """What `CLAIM` returns of a row for the rules."""
    return Claimed(
        HASH, row.wanted, row.wanted_reason, row.attempts, row.unanswered, row.retries, row.last_outcome
    )


def settle(row: Row, call: str, answer: Answer, step: Settle | Again) -> Row | None:
    """`SETTLE`, of one answer to `call`."""
    live_call = row.final is None and row.call == call
    if isinstance(step, Settle):
        receipt = answer.outcome is Outcome.RECEIPT
        taken = row.final is not State.SAVED if receipt else live_call
        held = answer.receipt is not None
        return ended(step.final, step.reason, receipt=held) if taken else None
    if not live_call:
        return None
    delivering = row.wanted is Wanted.DELIVER
    review = row.review if answer.outcome in (Outcome.UNAUTHENTICATED, Outcome.NOT_SENT) else None
    return stored(
        replace(
            row,
            call=None,
            calling=None,
            lease=Lease.NONE,
            claims=0,
            retries=row.retries + 1,
            attempts=row.attempts - step.returned,
            unanswered=row.unanswered - step.verdict,
            wanted=step.wanted if delivering else row.wanted,
            wanted_reason=step.wanted_reason if delivering else row.wanted_reason,
            next_call=step.next_call if delivering else CallKind.SEAL,
            review="access_lost" if step.access_lost else review,
            last_outcome=str(answer.outcome),
        )
    )


def settle_unsent(row: Row, *, late: bool) -> Row | None:
    """`SETTLE_UNSENT`."""
    if not unsent(row):
        return None
    if row.wanted is Wanted.ABANDON:
        return ended(State.NOT_SAVED, row.wanted_reason)
    return ended(State.NOT_SAVED, Reason.EXPIRED) if late else None


def cancel(row: Row) -> Row | None:
    """`CANCEL`."""
    if row.final is not None:
        return None
    if unsent(row):
        return ended(State.NOT_SAVED, Reason.CANCELLED)
    if row.wanted is not Wanted.DELIVER:
        return None
    return replace(row, wanted=Wanted.ABANDON, wanted_reason=Reason.CANCELLED, next_call=CallKind.SEAL)


def park_poison(row: Row, policy: Policy) -> Row | None:
    """`PARK_POISON`."""
    if row.final is not None or row.claims < policy.poison_claims or row.lease is Lease.LIVE:
        return None
    return ended(State.NEEDS_REVIEW, Reason.POISON)


def reconcile(row: Row) -> Row | None:
    """`RECONCILE`."""
    if row.final is not None or row.lease is Lease.LIVE or not (row.unanswered > 0 or row.review is not None):
        return None
    asks = row.wanted is Wanted.DELIVER and row.unanswered > 0
    return replace(row, next_call=CallKind.STATUS) if asks else row


def lapse(row: Row) -> Row | None:
    """The sender's clock passes the end of the lease."""
    return replace(row, lease=Lease.LAPSED) if row.lease is Lease.LIVE else None


def ended(final: State, reason: str | None, *, receipt: bool = False) -> Row:
    """A settled operation: its entry is gone."""
    return stored(Row(final=final, reason=reason, receipt=receipt))


def stored(row: Row) -> Row:
    """The row, if the check constraints of both tables admit it. Raises Unstorable."""
    admitted = (
        (row.final is State.SAVED) == row.receipt
        and (row.final in (None, State.SAVED) or row.reason is not None)
        and (row.call is None) == (row.lease is Lease.NONE) == (row.calling is None)
        and row.claims >= 0
        and 0 <= row.unanswered <= row.attempts
        and (row.wanted is Wanted.DELIVER) == (row.next_call is not CallKind.SEAL)
        and (row.wanted is Wanted.DELIVER) == (row.wanted_reason is None)
    )
    if not admitted:
        raise Unstorable(repr(row))
    return row
