"""A long walk of everything that can happen, in any order: each change of a state is an arrow of the one table."""

import random
from collections import Counter

import pytest
from sqlalchemy.orm import Session

from oncebox_models.outcomes import Answer, Outcome
from oncebox_models.states import ARROWS, DEFINITE_STATES, FINAL_STATES, State
from oncebox_outbox import OperationStatus
from oncebox_outbox.claiming import Call
from oncebox_outbox.policy import Policy
from oncebox_outbox.settling import park_poison, settle_unsent
from tests.integration.outbox.scenes import OUTBOX, Sender, receipt_for, write

POLICY = Policy(budget=3, poison_claims=3)
PAIRS = {(arrow.source, arrow.target) for arrow in ARROWS}
# What a receiver that keeps its word never does; it is followed, and recorded as a violation.
BROKEN_PROMISES = {(State.REFUSED, State.SAVED), (State.NOT_SAVED, State.SAVED)}
STEPS, OPERATIONS = 60, 12


class Walk:
    """Operations, the calls that are not answered yet (some of them of dead or sleeping workers), and chance."""

    def __init__(self, sender: Sender, seed: int) -> None:
        self.sender, self.random = sender, random.Random(seed)
        self.ids = [
            enqueued.id for enqueued in sender.enqueue(*(write(f"note-{n}") for n in range(OPERATIONS)))
        ]
        self.calls: list[Call] = []
        self.actions = (self.claim, self.claim, self.claim, self.answer, self.answer, self.lapse, self.cancel, self.expire, self.housekeeping)  # fmt: skip

    def step(self) -> str:
        action = self.random.choice(self.actions)
        action()
        return action.__name__

    def claim(self) -> None:
        self.sender.make_due(*self.ids)
        some = self.random.sample(self.ids, self.random.choice([1, 1, 6]))
        self.calls += self.sender.claim(*some, policy=POLICY).calls

    def answer(self) -> None:
        """Of a call chosen at random: it may be stale by now."""
        if self.calls:
            call = self.calls.pop(self.random.randrange(len(self.calls)))
            answers = {
                operation.outgoing.id: self._one(call, n) for n, operation in enumerate(call.operations)
            }
            self.sender.settle(call, answers, POLICY)

    def _one(self, call: Call, position: int) -> Answer:
        outcome = self.random.choice(
            [*Outcome, Outcome.UNKNOWN, Outcome.UNAUTHENTICATED, Outcome.UNAUTHENTICATED]
        )
        receipt = receipt_for(call, operation=position) if outcome is Outcome.RECEIPT else None
        return Answer(outcome, "walk", receipt)

    def lapse(self) -> None:
        self.sender.lapse(*self.random.sample(self.ids, 4))

    def cancel(self) -> None:
        with Session(self.sender.agent) as session, session.begin():
            OUTBOX.cancel(session, f"note-{self.random.randrange(OPERATIONS)}")

    def expire(self) -> None:
        self.sender.expire(self.random.choice(self.ids))

    def housekeeping(self) -> None:
        settle_unsent(self.sender.worker, limit=3)
        park_poison(self.sender.worker, POLICY, limit=3)

    def look(self) -> dict[str, OperationStatus]:
        with self.sender.agent.connect() as connection:
            return {
                name: OUTBOX.status(connection, name) for name in (f"note-{n}" for n in range(OPERATIONS))
            }


@pytest.mark.parametrize("seed", range(4))
def test_every_change_of_a_state_is_an_arrow(sender: Sender, seed: int) -> None:
    """Invariant 7: nothing definite is ever taken back, but for a broken promise of the receiver's."""
    walk = Walk(sender, seed)
    before, taken = walk.look(), Counter[tuple[State, State]]()
    for _ in range(STEPS):
        action = walk.step()
        after = walk.look()
        for name, was in before.items():
            now = after[name]
            if now.state is not was.state:
                taken[was.state, now.state] += 1
                told = f"{name} by {action}: {was.state} -> {now.state}; was {was}; is {now}"
                # A step may do two things that people cannot see apart, such as a claim and an answer: none here does.
                assert (was.state, now.state) in PAIRS | BROKEN_PROMISES, told
            elif was.state in DEFINITE_STATES:
                assert (now.reason, now.receipt) == (was.reason, was.receipt)
            assert (now.wanted is None) == (
                now.state in FINAL_STATES and sender.operation(now.id).final is not None
            )
            assert now.say
        before = after
    assert sum(taken.values()) > OPERATIONS, "a walk that goes nowhere shows nothing"
