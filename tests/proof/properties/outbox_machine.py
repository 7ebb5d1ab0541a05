"""Random histories of one outbox on PostgreSQL, with an honest receiver and a network that is not: against the model."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Final
from uuid import UUID

import sqlalchemy as sa
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy.orm import Session

from oncebox_models.outcomes import Answer, Outcome
from oncebox_models.schedule import RetrySchedule
from oncebox_models.states import ARROWS, DEFINITE_STATES, CallKind, State, Wanted
from oncebox_outbox import ArgumentConflict, Enqueued, Outbox, insights, statements
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
    budget=BUDGET,
    poison_claims=POISON_CLAIMS,
    access_lost_after=ACCESS_LOST_AFTER,
    schedule=RetrySchedule(0.1, 0.1),
)
_PAIRS: Final = {(arrow.source, arrow.target) for arrow in ARROWS}
_EXAMPLES: Final = itertools.count()
_ROUNDS: Final = 40

names = st.sampled_from([f"note-{number}" for number in range(1, 7)])
ordering_keys = st.sampled_from([None, None, "red", "blue"])
texts = st.sampled_from(["Reef B.", "Reef B.", "Reef B.", "Reef C."])
places = st.integers(0, 99)
deadlines = st.sampled_from([None, timedelta(hours=1), timedelta(days=6)])
CHORES: Final = ("dispatch", "undispatch", "settle unsent", "park poison", "reconcile", "prune", "retry")
skies = st.sampled_from(["fair", "token lost", "busy", "grant lost", "keys held"])
wanted_writes = st.lists(
    st.tuples(names, texts, ordering_keys, deadlines), min_size=1, max_size=3, unique_by=lambda w: w[0]
)


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


class OutboxHistory(RuleBasedStateMachine):
    """One example, with a tenant of its own. `taken` counts the arrows, over all examples."""

    sender: ClassVar[Sender]
    taken: ClassVar["Counter[tuple[State | None, State]]"]

    def __init__(self) -> None:
        super().__init__()
        self.outbox = Outbox(tenant=f"tenant-{next(_EXAMPLES)}", principal="researcher", destination="notes")
        self.receiver = HonestReceiver()
        self.operations: dict[str, Operation] = {}
        self.flights: list[Flight] = []
        self.shown: dict[str, State] = {}
        self.stamps: list[tuple[list[UUID], Any]] = []
        if self.sender.scalar("select count(*) from oncebox.outbox_entry"):
            # Of an example that failed: it must not make others fail.
            self.sender.change("truncate oncebox.outbox_entry, oncebox.operation cascade", ())

    # --- the agent -----------------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        """Two on their own, two in a row."""
        keys = {"note-1": None, "note-2": "red", "note-3": "red", "note-4": None}
        self.enqueue([(name, "Reef B.", key, None) for name, key in keys.items()])

    @rule(wanted=wanted_writes)
    def enqueue(self, wanted: list[tuple[str, str, str | None, timedelta | None]]) -> None:
        """New ones, the same ones again, and the same ids with another text, in one transaction."""
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

    @rule(wanted=wanted_writes)
    def enqueue_and_roll_back(self, wanted: list[Any]) -> None:
        """Nothing of it is left: the invariants look for it."""
        with Session(self.sender.agent) as session:
            self._enqueue(session, wanted)
            session.rollback()

    def _enqueue(
        self, session: Session, wanted: Sequence[tuple[str, str, str | None, timedelta | None]]
    ) -> list[Any]:
        return self.outbox.enqueue_many(
            session,
            [write(name, text=text, ordering_key=key, deadline=due) for name, text, key, due in wanted],
        )

    def _pick(self, place: int) -> Operation:
        """One of the operations; mostly one that something can still happen to."""
        listed = [*self.operations.values()]
        live = [operation for operation in listed if operation.live]
        pool = live if live and place % 8 else listed
        return pool[place % len(pool)]

    @rule(place=places)
    def cancel(self, place: int) -> None:
        self._cancel(self._pick(place))

    def _cancel(self, operation: Operation) -> None:
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

    # --- relay and workers ---------------------------------------------------------------------------

    def dispatch(self) -> None:
        due = dispatch(self.sender.worker, POLICY, low_mark=None, limit=1_000)
        expected = {
            operation.id: (operation.due_call, operation.silent >= 2)
            for operation in self.operations.values()
            if operation.live
            and not operation.leased
            and not operation.stamped
            and head_of_its_key(operation, self.operations.values())
        }
        assert {entry.id: (entry.kind, entry.alone) for entry in due} == expected
        for operation in self.operations.values():
            operation.stamped |= operation.id in expected
        if due:
            self.stamps.append(([entry.id for entry in due], due[0].dispatched_at))

    def undispatch(self) -> None:
        """The broker took none of the messages of the last dispatch; claims have taken some stamps off since."""
        if self.stamps:
            ids, at = self.stamps.pop()
            undispatch(self.sender.worker, ids, at)
            for operation in self.operations.values():
                operation.stamped &= operation.id not in ids

    @rule(worker=st.sampled_from(["worker-1", "worker-2"]), chosen=st.lists(places, min_size=1, max_size=4))
    def claim(self, worker: str, chosen: list[int]) -> None:
        """A message with some ids reaches a worker; it may be an old one, or one that another worker has, too."""
        self._claim(worker, [*dict.fromkeys(self._pick(place).id for place in chosen)])

    def _claim(self, worker: str, handed: Sequence[UUID]) -> list[Flight]:
        everything = [*self.operations.values()]
        self._everything_is_due()
        claimed = claim(self.sender.worker, POLICY, "notes", handed, worker=worker)
        got = {
            operation.outgoing.id: (call, operation)
            for call in claimed.calls
            for operation in call.operations
        }
        alone = len(handed) == 1
        expected = [o for o in everything if o.id in handed and claimable(o, everything, alone=alone)]
        assert {(o.id, o.due_call) for o in expected} == {(id, call.kind) for id, (call, _) in got.items()}
        flights = {call.call_id: Flight(call, {}) for call in claimed.calls}
        for operation in expected:
            call, sent = got[operation.id]
            seen = operation.claimed(call.call_id)
            assert (sent.entry.wanted, sent.entry.unanswered) == (seen.wanted, seen.unanswered)
            flights[call.call_id].seen[operation.id] = seen
        self.flights += flights.values()
        return [*flights.values()]

    def _everything_is_due(self) -> None:
        """The clock runs past every back-off; only leases and deadlines are turned by rules of their own."""
        self.sender.make_due(*(operation.id for operation in self.operations.values()))

    @rule(place=places, sky=skies, lost=st.booleans(), rounds=st.integers(1, 4))
    def work(self, place: int, sky: str, lost: bool, rounds: int) -> None:
        """A worker goes on with one operation for a while, in one weather; perhaps it hears of nothing."""
        self.receiver.weather(sky)
        operation = self._pick(place)
        for _ in range(rounds):
            self._work(operation, lost=lost)

    @rule(place=places, sky=skies, late=st.booleans())
    def overtake(self, place: int, sky: str, late: bool) -> None:
        """A worker sleeps through its lease with an answer in its hands, and another one has taken over."""
        self.receiver.weather(sky)
        operation = self._pick(place)
        sleeping = self._claim("worker-1", [operation.id])
        self._follow_arrows()
        for flight in sleeping:
            self._arrive(flight)
        self._lapse([operation])
        self._follow_arrows()
        self._claim("worker-2", [operation.id])
        if late:
            self._follow_arrows()
            for flight in sleeping:
                self._answer(flight, lost=False)

    @rule(place=places, sky=skies)
    def arrive(self, place: int, sky: str) -> None:
        """The packets of a call reach the receiver: at last, or once more."""
        self.receiver.weather(sky)
        if flights := [flight for flight in self.flights if flight.began]:
            self._arrive(flights[place % len(flights)])

    def _arrive(self, flight: Flight) -> None:
        for operation in flight.call.operations:
            outgoing = operation.outgoing
            flight.replies[outgoing.id] = self.receiver.answer(flight.call.kind, outgoing)

    @rule(place=places, lost=st.sampled_from([False, False, True]), arrives=st.booleans(), sky=skies)
    def answer(self, place: int, lost: bool, arrives: bool, sky: str) -> None:
        """A worker writes down what a call brought, however late, or that nothing came."""
        self.receiver.weather(sky)
        if waiting := [flight for flight in self.flights if flight.told is None]:
            flight = waiting[place % len(waiting)]
            if arrives and not lost:
                self._arrive(flight)
            self._answer(flight, lost=lost)

    def _answer(self, flight: Flight, *, lost: bool) -> None:
        if not flight.replies and not lost:
            flight.began = False
            nothing = Answer(Outcome.NOT_SENT, "connect_refused")
        else:
            nothing = Answer(Outcome.UNKNOWN, "read_timeout")
        replies = {} if lost else flight.replies
        flight.told = {o.outgoing.id: replies.get(o.outgoing.id, nothing) for o in flight.call.operations}
        self._settle(flight)

    @rule(place=places)
    def answer_again(self, place: int) -> None:
        """The same answers once more: the commit of the first time was not heard of."""
        if told := [flight for flight in self.flights if flight.told is not None]:
            self._settle(told[place % len(told)])

    def _settle(self, flight: Flight) -> None:
        call, told = flight.call, flight.told
        assert told is not None
        before = {o.id: o.live for o in self.operations.values()}
        settled = settle(self.sender.worker, POLICY, call, told, no_jitter)
        for operation in self.operations.values():
            if operation.id in told:
                operation.answered(call.call_id, call.kind, flight.seen[operation.id], told[operation.id])
        ended = {o.id: o.final for o in self.operations.values() if o.id in settled.finals}
        assert dict(settled.finals) == ended
        assert {o.id for o in self.operations.values() if before[o.id] and not o.live} <= set(settled.finals)

    # --- time, and what people and housekeeping do ---------------------------------------------------

    @rule(chosen=st.lists(places, min_size=1, max_size=3))
    def leases_run_out(self, chosen: list[int]) -> None:
        self._lapse([self._pick(place) for place in chosen])

    def _lapse(self, some: list[Operation]) -> None:
        self.sender.lapse(*(operation.id for operation in some))
        for operation in some:
            operation.leased = False

    @rule(place=places)
    def deadline_passes(self, place: int) -> None:
        operation = self._pick(place)
        self.sender.expire(operation.id)
        operation.passed = True
        self.receiver.passed.add(operation.name)

    @rule(what=st.sampled_from(CHORES), place=places)
    def chore(self, what: str, place: int) -> None:
        """What a relay, housekeeping or a person does beside the calls."""
        match what:
            case "dispatch":
                self.dispatch()
            case "undispatch":
                self.undispatch()
            case "settle unsent":
                self.settle_unsent()
            case "park poison":
                self.park_poison()
            case "reconcile":
                self.reconcile()
            case "prune":
                self.prune()
            case _:
                self.retry(self._pick(place))

    @rule(place=places)
    def somebody_else_seals(self, place: int) -> None:
        name = self._pick(place).name
        if name not in self.receiver.notes:
            self.receiver.sealed.add(name)

    def settle_unsent(self) -> None:
        done = set(settle_unsent(self.sender.worker, limit=100))
        expected = [
            operation
            for operation in self.operations.values()
            if operation.live
            and operation.unsent
            and (operation.passed or operation.wanted is Wanted.ABANDON)
        ]
        assert done == {operation.id for operation in expected}
        for operation in expected:
            operation.settle(
                State.NOT_SAVED, operation.reason if operation.wanted is Wanted.ABANDON else "expired"
            )

    def park_poison(self) -> None:
        parked = set(park_poison(self.sender.worker, POLICY, limit=100))
        expected = [
            o for o in self.operations.values() if o.live and not o.leased and o.silent >= POISON_CLAIMS
        ]
        assert parked == {operation.id for operation in expected}
        for operation in expected:
            operation.settle(State.NEEDS_REVIEW, "poison")

    def retry(self, operation: Operation) -> None:
        with Session(self.sender.agent) as session, session.begin():
            did = retry(session, operation.id)
        if not operation.live:
            assert did.did is Prompted.SETTLED
            return
        assert did.did is (Prompted.UNDER_WAY if operation.leased else Prompted.DUE)
        assert did.next_call is operation.due_call
        assert did.behind is not head_of_its_key(operation, self.operations.values())
        operation.stamped &= operation.leased

    def reconcile(self) -> None:
        with Session(self.sender.agent) as session, session.begin():
            did = reconcile(session, tenant=self.outbox.tenant)
        asked = [
            o for o in self.operations.values() if o.live and not o.leased and (o.unanswered or o.access_lost)
        ]
        assert did.asked == len(asked)
        for operation in asked:
            operation.stamped = False
            operation.asked_about()

    def prune(self) -> None:
        """Arguments and calls of what has ended go; what was promised stays."""
        prune(self.sender.worker, older_than_s=0.0)

    # --- what is always true -------------------------------------------------------------------------

    @invariant()
    def the_database_says_what_the_model_says(self) -> None:
        with self.sender.agent.connect() as connection:
            for name, operation in self.operations.items():
                found = self.outbox.status(connection, name)
                told = f"{name}: {found}, and not {operation}"
                assert (found.state, found.receipt) == (operation.state, operation.receipt), told
                assert found.final == (operation.state in (*DEFINITE_STATES, State.NEEDS_REVIEW)), told
                assert found.say
                if operation.live:
                    counted = (found.attempts, found.unanswered, found.wanted)
                    assert counted == (len(operation.sends), operation.unanswered, operation.wanted), told
                else:
                    assert found.reason == operation.reason, told
            self._compare_totals(connection)
        self._follow_arrows()

    def _compare_totals(self, connection: sa.Connection) -> None:
        """Lag counts what is live, in every state; no operation lost its entry; nothing contradicts anything."""
        live = Counter(operation.state for operation in self.operations.values() if operation.live)
        lag = insights.lag(connection)
        assert {depth.state: depth.entries for depth in lag.depths if depth.entries} == live
        assert (lag.entries, lag.violations) == (live.total(), {})
        assert lag.oldest_age_s > 0 or not live
        assert connection.execute(statements.ORPHANS, {"limit": 1}).all() == []

    def _follow_arrows(self) -> None:
        for name, operation in self.operations.items():
            was, now = self.shown.get(name), operation.state
            if was is not now:
                assert (was, now) in _PAIRS, f"{name}: {was} -> {now}"
                self.taken[was, now] += 1
            self.shown[name] = now

    @invariant()
    def every_request_was_counted_before_it_left(self) -> None:
        """What the receiver has seen of an operation is never more than the attempts that are told of it."""
        for operation in self.operations.values():
            arrived = [
                flight
                for flight in self.flights
                if flight.call.kind is CallKind.SEND and operation.id in flight.replies
            ]
            assert not operation.live or len(arrived) <= len(operation.sends), operation

    @invariant()
    def nothing_definite_is_untrue(self) -> None:
        """Against what the receiver holds: it is asked here as nobody could ask it."""
        for name, operation in self.operations.items():
            note = self.receiver.notes.get(name)
            if operation.final is State.SAVED:
                assert note is not None
                assert operation.receipt == note
            elif operation.final in (State.REFUSED, State.NOT_SAVED):
                assert note is None, f"{name} is {operation.final}, and there is a note"
                assert name in self.receiver.sealed or not self._may_arrive(operation)
        by_key = [
            [
                name
                for name, operation in self.operations.items()
                if operation.ordering_key == key and name in made
            ]
            for made in [self.receiver.made]
            for key in ("red", "blue")
        ]
        for in_commit_order in by_key:
            assert in_commit_order == [name for name in self.receiver.made if name in in_commit_order]

    def _may_arrive(self, operation: Operation) -> bool:
        return any(flight.began and operation.id in flight.seen for flight in self.flights)

    # --- the end -------------------------------------------------------------------------------------

    def teardown(self) -> None:
        """Time passes, the weather is fair, workers work: everything settles, and no late packet changes it."""
        self.receiver.weather("fair")
        for _ in range(_ROUNDS):
            live = [operation for operation in self.operations.values() if operation.live]
            if not live:
                break
            self._lapse(live)
            self._follow_arrows()
            for operation in live:
                self._work(operation, lost=False)
            self.settle_unsent()
            self.park_poison()
            self._give_up_what_is_blocked()
        assert [operation for operation in self.operations.values() if operation.live] == []
        self.the_database_says_what_the_model_says()
        self.nothing_definite_is_untrue()
        for flight in self.flights:
            if flight.began:
                self._arrive(flight)
        self.nothing_definite_is_untrue()
        unsettled = {
            operation.reason
            for operation in self.operations.values()
            if operation.state is State.NEEDS_REVIEW
        }
        assert unsettled <= {"poison"}

    def _work(self, operation: Operation, *, lost: bool) -> None:
        for flight in self._claim("worker-1", [operation.id]):
            self._follow_arrows()
            self._arrive(flight)
            self._answer(flight, lost=lost)
            self._follow_arrows()

    def _give_up_what_is_blocked(self) -> None:
        """Behind one that waits for a person nothing was ever sent: it is cancelled at once."""
        reviewed = {o.ordering_key for o in self.operations.values() if o.final is State.NEEDS_REVIEW} - {
            None
        }
        for operation in self.operations.values():
            if operation.live and operation.ordering_key in reviewed:
                self._cancel(operation)
