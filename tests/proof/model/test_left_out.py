"""What the model leaves out of a state decides nothing: each step is the same with and without it."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from oncebox_models.outcomes import Outcome
from oncebox_models.states import CallKind, Wanted
from tests.proof.model import receiver as receiving
from tests.proof.model import wire
from tests.proof.model.moves import moves
from tests.proof.model.normal_form import normal, stopped
from tests.proof.model.reachable import reachable_rows, snapshots
from tests.proof.model.receiver import Clock, Receiver, ReceiverRules, Record, Sender
from tests.proof.model.rows import Lease, Row, claimed_values
from tests.proof.model.sender import POLICY, Call, Protocol, Side
from tests.proof.model.wire import Reply

WHOLE = Protocol()
OF_THE_RECORD = tuple(Reply)[: tuple(Reply).index(Reply.BUSY)]
FAR = 7
"""Attempts and outcomes beyond every bound."""


def _sides() -> Iterator[Side]:
    """Every row as the statements leave it, and as it is after many more answers, with a call of each kind of luck."""
    for row in reachable_rows():
        if row.final is not None or row.claims > POLICY.poison_claims:
            continue
        far = replace(row, attempts=row.attempts + FAR, retries=row.retries + FAR)
        for one, late in product((row, far) if row.attempts else (row,), (False, True)):
            for held in _calls(one):
                yield Side(one, held, None, late)


def _calls(row: Row) -> Iterator[Call | None]:
    if row.calling is None:
        yield None
        return
    for entry in snapshots(row):
        lapsed = row.lease is Lease.LAPSED
        yield Call(row.calling, entry, began=False, lapsed=lapsed)
        # What can be heard on a bad day, can be heard whatever came back before.
        for reply in (None, *(reply for reply in wire.replies(row.calling) if reply in OF_THE_RECORD)):
            yield Call(row.calling, entry, began=True, reply=reply, lapsed=lapsed)


def test_numbers_reasons_and_earlier_outcomes_of_the_sender() -> None:
    """Step for step: the exact side and its normal form go to the same normal forms, for the same causes."""
    seen = 0
    for side in _sides():
        exact = _steps(side)
        assert exact == _steps(normal(WHOLE, side)), side
        seen += len(exact)
    assert seen > 10_000


def _steps(side: Side) -> set[tuple[object, ...]]:
    """Every step that leads elsewhere."""
    here = normal(WHOLE, side)
    return {
        (
            move.told,
            _without_idle_answers(move.after),
            move.cause,
            move.left,
            frozenset((was, now) for was, now in move.became.items() if was is not now),
            move.broken,
            move.healthy,
        )
        for move in moves(WHOLE, side)
        if move.after != here
    }


def _without_idle_answers(side: Side) -> Side:
    return replace(side, stale=side.stale and stopped(WHOLE, side.stale))


def test_what_a_stopped_worker_holds_but_a_receipt() -> None:
    for row in reachable_rows():
        for kind in (CallKind.SEND, CallKind.STATUS, CallKind.SEAL):
            for reply in (None, *wire.replies(kind)):
                entry = claimed_values(replace(row, attempts=row.attempts + 1))
                stale = Call(kind, entry, began=reply is not Reply.NEVER_BEGAN, reply=reply, lapsed=True)
                exact = Side(normal(WHOLE, Side(row)).row, None, stale)
                assert _steps(exact) == _steps(replace(exact, stale=stopped(WHOLE, stale))), exact


def test_the_grant_and_the_clock_of_a_receiver_that_has_a_record() -> None:
    rules = ReceiverRules()
    for record, grant, clock in product(list(Record)[1:], (False, True), Clock):
        notes = int(record is Record.OURS)
        exact = Receiver(record, notes, promised=record is Record.SEALED, grant=grant, clock=clock)
        assert _told(rules, exact) == _told(rules, receiving.normal(rules, exact)), exact


def _told(rules: ReceiverRules, receiver: Receiver) -> set[tuple[object, ...]]:
    """Everything that the receiver can come to and say, but for what leaves it as it is and says nothing."""
    packets = product((CallKind.SEND, CallKind.STATUS, CallKind.SEAL), Sender)
    delivered = (effect for kind, who in packets for effect in receiving.deliver(rules, receiver, kind, who))
    here = receiving.normal(rules, receiver)
    found: set[tuple[object, ...]] = {
        (receiving.normal(rules, effect.receiver), effect.to, effect.reply, effect.broken)
        for effect in (*delivered, *receiving.happen(rules, receiver))
    }
    return found - {(here, None, None, ())}


@pytest.mark.parametrize(
    "outcome", [outcome for outcome in Outcome if outcome is not Outcome.UNAUTHENTICATED]
)
def test_an_outcome_before_the_last_decides_only_when_it_was_401(outcome: Outcome) -> None:
    for side in _sides():
        if side.held is not None and side.row.wanted is Wanted.DELIVER:
            entry = replace(side.held.entry, last_outcome=str(outcome))
            other = replace(side.held.entry, last_outcome=None)
            for reply in wire.replies(side.held.kind):
                answer = wire.answer(side.held.kind, reply)
                steps = [
                    WHOLE.next_step(told, side.held.kind, answer, POLICY, lambda: 0.5)
                    for told in (entry, other)
                ]
                assert steps[0] == steps[1]
