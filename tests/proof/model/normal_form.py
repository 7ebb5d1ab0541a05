"""The same side without what changes no step, so that there are few; `test_left_out.py` shows that it changes none."""

from dataclasses import replace
from typing import Final

from oncebox_models.outcomes import Outcome
from oncebox_models.states import State, Wanted
from oncebox_outbox.rules import Claimed
from tests.proof.model import rows
from tests.proof.model.rows import Row
from tests.proof.model.sender import Call, Protocol, Side
from tests.proof.model.wire import Reply

_GIVEN: Final = "given"
"""Stands for every reason: why an operation is given up changes no step."""


def stopped(protocol: Protocol, call: Call) -> Call | None:
    """A call that holds the entry no more. Only a receipt of it still counts."""
    if not protocol.guarded:
        return call
    if not call.began:
        return None
    reply = call.reply if call.reply is Reply.RECEIPT else None
    return Call(call.kind, _ANY_ENTRY, began=True, reply=reply, lapsed=call.lapsed)


_ANY_ENTRY: Final = rows.claimed_values(Row(attempts=1, unanswered=1))


def normal(protocol: Protocol, side: Side) -> Side:
    """The same side without what changes no step: reasons, most outcomes, and how many sends had a verdict.

    A send with a verdict stays one, so of these only the first makes a difference: `attempts` is never 0 again.
    """
    row = side.row
    if row.final is not None:
        reason = None if row.final is State.SAVED else _GIVEN
        gone = Row(final=row.final, reason=reason, receipt=row.receipt)
        return Side(gone, side.held and stopped(protocol, side.held), side.stale)
    held = side.held
    if held is not None:
        held = replace(held, entry=_normal_entry(held.entry))
    kept = replace(
        row,
        attempts=_normal_attempts(row.attempts, row.unanswered),
        retries=0,
        wanted_reason=None if row.wanted is Wanted.DELIVER else _GIVEN,
        last_outcome=_last(row.last_outcome),
    )
    late = side.late and row.wanted is Wanted.DELIVER
    return Side(kept, held, side.stale, late)


def _normal_entry(entry: Claimed) -> Claimed:
    return replace(
        entry,
        attempts=_normal_attempts(entry.attempts, entry.unanswered),
        retries=0,
        wanted_reason=None if entry.wanted is Wanted.DELIVER else _GIVEN,
        last_outcome=_last(entry.last_outcome),
    )


def _normal_attempts(attempts: int, unanswered: int) -> int:
    return unanswered + min(1, attempts - unanswered)


def _last(outcome: str | None) -> str | None:
    return outcome if outcome == Outcome.UNAUTHENTICATED else None
