"""What can be done to an outbox, done to the database and told to the model at once; the two must agree on the result."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy.orm import Session

from oncebox_models.outcomes import Answer, Outcome
from oncebox_models.schedule import RetrySchedule
from oncebox_models.states import State, Wanted
from oncebox_outbox import ArgumentConflict, Enqueued, Outbox
from oncebox_outbox.cancelling import Cancelled, cancel
from oncebox_outbox.claiming import Call, claim, dispatch, undispatch
from oncebox_outbox.policy import Policy
from oncebox_outbox.prompting import Prompted, reconcile, retry
from oncebox_outbox.pruning import prune
from oncebox_outbox.settling import park_poison, settle, settle_unsent
from tests.integration.outbox.scenes import Sender, no_jitter, write
from tests.proof.properties.honest_receiver import HonestReceiver
from tests.proof.properties.outbox_model import (
    ACCESS_LOST_AFTER,
    BUDGET,
    POISON_CLAIMS,
    Operation,
    Seen,
    claimable,
    head_of_its_key,
)

POLICY: Final = Policy(
    # Longer than any history lasts on a slow machine: leases run out when they are told to.
    lease_s=3600.0,
    budget=BUDGET,
    poison_claims=POISON_CLAIMS,
    access_lost_after=ACCESS_LOST_AFTER,
    schedule=RetrySchedule(0.1, 0.1),
)
_EXAMPLES: Final = itertools.count()

WantedWrite = tuple[str, str, str | None, timedelta | None]
"""Name, text, ordering key and deadline of a write."""


@dataclass(slots=True)
class Flight:
    """One call of a worker, from its claim until its last packet is forgotten.

    replies: what came back of each operation. told: the answers that the worker wrote down. began: False once the
    worker said that not a byte was sent, which is true for ever.
    """

    call: Call
    seen: dict[UUID, Seen]
    began: bool = True
    replies: dict[UUID, Answer] = field(default_factory=dict[UUID, Answer])
    told: dict[UUID, Answer] | None = None


class Acts:
    """The operations of one tenant of its own, on a database on which nothing else is live."""

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self.outbox = Outbox(tenant=f"tenant-{next(_EXAMPLES)}", principal="researcher", destination="notes")
        self.receiver = HonestReceiver()
        self.operations: dict[str, Operation] = {}
        self.flights: list[Flight] = []
        self.stamps: list[tuple[list[UUID], datetime]] = []
        if sender.scalar("select count(*) from oncebox.outbox_entry"):
            # Of an example that failed: it must not make others fail.
            sender.change("truncate oncebox.outbox_entry, oncebox.operation cascade", ())

    def all(self) -> list[Operation]:
        """In the order of their commits."""
        return [*self.operations.values()]

    def live(self) -> list[Operation]:
        return [operation for operation in self.all() if operation.live]

    # --- the agent -----------------------------------------------------------------------------------

    def enqueue(self, wanted: Sequence[WantedWrite]) -> None:
        """New ones, the same ones again, and the same names with another text, in one transaction."""
        with Session(self.sender.agent) as session, session.begin():
            outcomes = self._enqueue(session, wanted)
        for (name, text, key, _), outcome in zip(wanted, outcomes, strict=True):
            known = self.operations.get(name)
            if known is None:
                assert isinstance(outcome, Enqueued)
                assert (outcome.created, outcome.state) == (True, State.PENDING)
                self.operations[name] = Operation(outcome.id, name, text, key)
            elif known.text != text:
                assert isinstance(outcome, ArgumentConflict)
                assert outcome.state is known.state
            else:
                assert isinstance(outcome, Enqueued)
                assert (outcome.id, outcome.created) == (known.id, False)
                assert (outcome.state, outcome.receipt) == (known.state, known.receipt)

    def enqueue_and_roll_back(self, wanted: Sequence[WantedWrite]) -> None:
        with Session(self.sender.agent) as session:
            self._enqueue(session, wanted)
            session.rollback()

    def _enqueue(self, session: Session, wanted: Sequence[WantedWrite]) -> list[Any]:
        return self.outbox.enqueue_many(
            session,
            [write(name, text=text, ordering_key=key, deadline=due) for name, text, key, due in wanted],
        )

    def cancel(self, operation: Operation) -> None:
        before = (operation.live, operation.unsent, operation.wanted)
        with Session(self.sender.agent) as session, session.begin():
            did = cancel(session, operation.id)
        operation.cancelled()
        match before:
            case True, True, _:
                assert did is Cancelled.SETTLED
            case True, False, Wanted.DELIVER:
                assert did is Cancelled.SEALING
            case _:
                assert did is Cancelled.NOTHING

    # --- workers and the network ---------------------------------------------------------------------

    def claim(self, worker: str, handed: Sequence[UUID]) -> list[Flight]:
        """A worker is handed these ids and takes what it may; every back-off is over."""
        self.sender.make_due(*(operation.id for operation in self.all()))
        claimed = claim(self.sender.worker, POLICY, "notes", handed, worker=worker)
        got = {
            operation.outgoing.id: (call, operation)
            for call in claimed.calls
            for operation in call.operations
        }
        alone = len(handed) == 1
        expected = [o for o in self.all() if o.id in handed and claimable(o, self.all(), alone=alone)]
        assert {(o.id, o.due_call) for o in expected} == {(id, call.kind) for id, (call, _) in got.items()}
        flights = {call.call_id: Flight(call, {}) for call in claimed.calls}
        for operation in expected:
            call, sent = got[operation.id]
            seen = operation.claimed(call.call_id)
            assert (sent.entry.wanted, sent.entry.unanswered) == (seen.wanted, seen.unanswered)
            flights[call.call_id].seen[operation.id] = seen
        self.flights += flights.values()
        return [*flights.values()]

    def arrive(self, flight: Flight) -> None:
        """Its packets reach the receiver, perhaps not for the first time."""
        for operation in flight.call.operations:
            outgoing = operation.outgoing
            flight.replies[outgoing.id] = self.receiver.answer(flight.call.kind, outgoing)

    def answer(self, flight: Flight, *, lost: bool) -> None:
        """The worker writes down what it heard: nothing when that was lost, or when it had sent nothing."""
        if not flight.replies and not lost:
            flight.began = False
            nothing = Answer(Outcome.NOT_SENT, "connect_refused")
        else:
            nothing = Answer(Outcome.UNKNOWN, "read_timeout")
        replies = {} if lost else flight.replies
        flight.told = {o.outgoing.id: replies.get(o.outgoing.id, nothing) for o in flight.call.operations}
        self.settle(flight)

    def settle(self, flight: Flight) -> None:
        call, told = flight.call, flight.told
        assert told is not None
        live = self.live()
        settled = settle(self.sender.worker, POLICY, call, told, no_jitter)
        for operation in self.all():
            if operation.id in told:
                operation.answered(call.call_id, call.kind, flight.seen[operation.id], told[operation.id])
        assert dict(settled.finals) == {o.id: o.final for o in self.all() if o.id in settled.finals}
        assert {operation.id for operation in live if not operation.live} <= settled.finals.keys()

    # --- time ----------------------------------------------------------------------------------------

    def lapse(self, some: Iterable[Operation]) -> None:
        listed = [*some]
        self.sender.lapse(*(operation.id for operation in listed))
        for operation in listed:
            operation.leased = False

    def expire(self, operation: Operation) -> None:
        self.sender.expire(operation.id)
        operation.passed = True
        self.receiver.passed.add(operation.name)

    # --- relay, housekeeping, people -----------------------------------------------------------------

    def dispatch(self) -> None:
        due = dispatch(self.sender.worker, POLICY, low_mark=None, limit=1_000)
        expected = {
            operation.id: (operation.due_call, operation.silent >= 2)
            for operation in self.live()
            if not operation.leased and not operation.stamped and head_of_its_key(operation, self.all())
        }
        assert {entry.id: (entry.kind, entry.alone) for entry in due} == expected
        for operation in self.all():
            operation.stamped |= operation.id in expected
        if due:
            self.stamps.append(([entry.id for entry in due], due[0].dispatched_at))

    def undispatch(self) -> None:
        """The broker took none of the messages of the last dispatch."""
        if self.stamps:
            ids, at = self.stamps.pop()
            undispatch(self.sender.worker, ids, at)
            for operation in self.all():
                operation.stamped &= operation.id not in ids

    def settle_unsent(self) -> None:
        done = set(settle_unsent(self.sender.worker, limit=100))
        given_up = [o for o in self.live() if o.unsent and (o.passed or o.wanted is Wanted.ABANDON)]
        assert done == {operation.id for operation in given_up}
        for operation in given_up:
            reason = operation.reason if operation.wanted is Wanted.ABANDON else "expired"
            operation.settle(State.NOT_SAVED, reason)

    def park_poison(self) -> None:
        parked = set(park_poison(self.sender.worker, POLICY, limit=100))
        poison = [o for o in self.live() if not o.leased and o.silent >= POISON_CLAIMS]
        assert parked == {operation.id for operation in poison}
        for operation in poison:
            operation.settle(State.NEEDS_REVIEW, "poison")

    def retry(self, operation: Operation) -> None:
        with Session(self.sender.agent) as session, session.begin():
            did = retry(session, operation.id)
        if not operation.live:
            assert did.did is Prompted.SETTLED
            return
        assert did.did is (Prompted.UNDER_WAY if operation.leased else Prompted.DUE)
        assert did.next_call is operation.due_call
        assert did.behind is not head_of_its_key(operation, self.all())
        operation.stamped &= operation.leased

    def reconcile(self) -> None:
        with Session(self.sender.agent) as session, session.begin():
            did = reconcile(session, tenant=self.outbox.tenant)
        asked = [o for o in self.live() if not o.leased and (o.unanswered or o.access_lost)]
        assert did.asked == len(asked)
        for operation in asked:
            operation.stamped = False
            operation.asked_about()

    def prune(self) -> None:
        """Arguments and calls of what has ended go; what was promised stays."""
        prune(self.sender.worker, older_than_s=0.0)
