"""Random histories of one outbox on PostgreSQL, with an honest receiver and a network that is not: against the model."""

from collections import Counter
from datetime import timedelta
from typing import ClassVar, Final

import sqlalchemy as sa
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from oncebox_models.states import ARROWS, DEFINITE_STATES, CallKind, State
from oncebox_outbox import insights, statements
from tests.integration.outbox.scenes import Sender
from tests.proof.properties.outbox_acts import Acts, WantedWrite
from tests.proof.properties.outbox_model import Operation

Taken = Counter[tuple[State | None, State]]

CHORES: Final = ("dispatch", "undispatch", "settle unsent", "park poison", "reconcile", "prune", "retry")
_PAIRS: Final = {(arrow.source, arrow.target) for arrow in ARROWS}
_ROUNDS: Final = 40

names = st.sampled_from([f"note-{number}" for number in range(1, 7)])
ordering_keys = st.sampled_from([None, None, "red", "blue"])
texts = st.sampled_from(["Reef B.", "Reef B.", "Reef B.", "Reef C."])
deadlines = st.sampled_from([None, timedelta(hours=1), timedelta(days=6)])
places = st.integers(0, 99)
skies = st.sampled_from(["fair", "token lost", "busy", "grant lost", "keys held"])
wanted_writes = st.lists(
    st.tuples(names, texts, ordering_keys, deadlines), min_size=1, max_size=3, unique_by=lambda w: w[0]
)


class OutboxHistory(RuleBasedStateMachine):
    """One example. `taken` counts the arrows, over all examples."""

    sender: ClassVar[Sender]
    taken: ClassVar[Taken]

    def __init__(self) -> None:
        super().__init__()
        self.acts = Acts(self.sender)
        self.receiver = self.acts.receiver
        self.shown: dict[str, State] = {}

    def _pick(self, place: int) -> Operation:
        """One of the operations; mostly one that something can still happen to."""
        live = self.acts.live()
        pool = live if live and place % 8 else self.acts.all()
        return pool[place % len(pool)]

    # --- the agent -----------------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        """Two on their own, two in a row."""
        keys = {"note-1": None, "note-2": "red", "note-3": "red", "note-4": None}
        self.acts.enqueue([(name, "Reef B.", key, None) for name, key in keys.items()])

    @rule(wanted=wanted_writes)
    def enqueue(self, wanted: list[WantedWrite]) -> None:
        self.acts.enqueue(wanted)

    @rule(wanted=wanted_writes)
    def enqueue_and_roll_back(self, wanted: list[WantedWrite]) -> None:
        """Nothing of it is left: the invariants look for it."""
        self.acts.enqueue_and_roll_back(wanted)

    @rule(place=places)
    def cancel(self, place: int) -> None:
        self.acts.cancel(self._pick(place))

    # --- workers and the network ---------------------------------------------------------------------

    @rule(worker=st.sampled_from(["worker-1", "worker-2"]), chosen=st.lists(places, min_size=1, max_size=4))
    def claim(self, worker: str, chosen: list[int]) -> None:
        """A message with some ids reaches a worker; it may be an old one, or one that another worker has, too."""
        self.acts.claim(worker, [*dict.fromkeys(self._pick(place).id for place in chosen)])

    @rule(place=places, sky=skies, lost=st.booleans(), rounds=st.integers(1, 4))
    def work(self, place: int, sky: str, lost: bool, rounds: int) -> None:
        """A worker goes on with one operation for a while, in one weather; perhaps it hears of nothing."""
        self.receiver.weather(sky)
        operation = self._pick(place)
        for _ in range(rounds):
            self._work(operation, lost=lost)

    def _work(self, operation: Operation, *, lost: bool) -> None:
        for flight in self.acts.claim("worker-1", [operation.id]):
            self._follow_arrows()
            self.acts.arrive(flight)
            self.acts.answer(flight, lost=lost)
            self._follow_arrows()

    @rule(place=places, sky=skies, late=st.booleans())
    def overtake(self, place: int, sky: str, late: bool) -> None:
        """A worker sleeps through its lease with an answer in its hands, and another one takes over."""
        self.receiver.weather(sky)
        operation = self._pick(place)
        sleeping = self.acts.claim("worker-1", [operation.id])
        self._follow_arrows()
        for flight in sleeping:
            self.acts.arrive(flight)
        self.acts.lapse([operation])
        self._follow_arrows()
        self.acts.claim("worker-2", [operation.id])
        if late:
            self._follow_arrows()
            for flight in sleeping:
                self.acts.answer(flight, lost=False)

    @rule(place=places, sky=skies)
    def arrive(self, place: int, sky: str) -> None:
        """The packets of a call reach the receiver: at last, or once more."""
        self.receiver.weather(sky)
        if flights := [flight for flight in self.acts.flights if flight.began]:
            self.acts.arrive(flights[place % len(flights)])

    @rule(place=places, lost=st.sampled_from([False, False, True]), arrives=st.booleans(), sky=skies)
    def answer(self, place: int, lost: bool, arrives: bool, sky: str) -> None:
        """A worker writes down what a call brought, however late, or that nothing came."""
        self.receiver.weather(sky)
        if waiting := [flight for flight in self.acts.flights if flight.told is None]:
            flight = waiting[place % len(waiting)]
            if arrives and not lost:
                self.acts.arrive(flight)
            self.acts.answer(flight, lost=lost)

    @rule(place=places)
    def answer_again(self, place: int) -> None:
        """The same answers once more: the commit of the first time was not heard of."""
        if told := [flight for flight in self.acts.flights if flight.told is not None]:
            self.acts.settle(told[place % len(told)])

    # --- time, and what people and housekeeping do ---------------------------------------------------

    @rule(chosen=st.lists(places, min_size=1, max_size=3))
    def leases_run_out(self, chosen: list[int]) -> None:
        self.acts.lapse(self._pick(place) for place in chosen)

    @rule(place=places)
    def deadline_passes(self, place: int) -> None:
        self.acts.expire(self._pick(place))

    @rule(place=places)
    def somebody_else_seals(self, place: int) -> None:
        name = self._pick(place).name
        if name not in self.receiver.notes:
            self.receiver.sealed.add(name)

    @rule(what=st.sampled_from(CHORES), place=places)
    def chore(self, what: str, place: int) -> None:
        """What a relay, housekeeping or a person does beside the calls."""
        match what:
            case "dispatch":
                self.acts.dispatch()
            case "undispatch":
                self.acts.undispatch()
            case "settle unsent":
                self.acts.settle_unsent()
            case "park poison":
                self.acts.park_poison()
            case "reconcile":
                self.acts.reconcile()
            case "prune":
                self.acts.prune()
            case _:
                self.acts.retry(self._pick(place))

    # --- what is always true -------------------------------------------------------------------------

    @invariant()
    def the_database_says_what_the_model_says(self) -> None:
        with self.sender.agent.connect() as connection:
            for operation in self.acts.all():
                found = self.acts.outbox.status(connection, operation.name)
                told = f"{found}, and not {operation}"
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
        live = Counter(operation.state for operation in self.acts.live())
        lag = insights.lag(connection)
        assert {depth.state: depth.entries for depth in lag.depths if depth.entries} == live
        assert (lag.entries, lag.violations) == (live.total(), {})
        assert lag.oldest_age_s > 0 or not live
        assert connection.execute(statements.ORPHANS, {"limit": 1}).all() == []

    def _follow_arrows(self) -> None:
        for name, operation in self.acts.operations.items():
            was, now = self.shown.get(name), operation.state
            if was is not now:
                assert (was, now) in _PAIRS, f"{name}: {was} -> {now}"
                self.taken[was, now] += 1
            self.shown[name] = now

    @invariant()
    def every_request_was_counted_before_it_left(self) -> None:
        """What the receiver has seen of an operation is never more than the attempts that are told of it."""
        sends = [flight for flight in self.acts.flights if flight.call.kind is CallKind.SEND]
        for operation in self.acts.live():
            arrived = sum(operation.id in flight.replies for flight in sends)
            assert arrived <= len(operation.sends), operation

    @invariant()
    def nothing_definite_is_untrue(self) -> None:
        """Against what the receiver holds: it is asked here as nobody could ask it."""
        for name, operation in self.acts.operations.items():
            note = self.receiver.notes.get(name)
            if operation.final is State.SAVED:
                assert note is not None
                assert operation.receipt == note
            elif operation.final in (State.REFUSED, State.NOT_SAVED):
                assert note is None, f"{name} is {operation.final}, and there is a note"
                assert name in self.receiver.sealed or not self._may_arrive(operation)

    def _may_arrive(self, operation: Operation) -> bool:
        return any(flight.began and operation.id in flight.seen for flight in self.acts.flights)

    @invariant()
    def notes_of_a_key_are_made_in_commit_order(self) -> None:
        for key in ("red", "blue"):
            of_key = [name for name, o in self.acts.operations.items() if o.ordering_key == key]
            made = [name for name in self.receiver.made if name in of_key]
            assert made == [name for name in of_key if name in made]

    # --- the end -------------------------------------------------------------------------------------

    def teardown(self) -> None:
        """Time passes, the weather is fair, workers work: everything settles, and no late packet changes it."""
        self.receiver.weather("fair")
        for _ in range(_ROUNDS):
            live = self.acts.live()
            if not live:
                break
            self.acts.lapse(live)
            self._follow_arrows()
            for operation in live:
                self._work(operation, lost=False)
            self.acts.settle_unsent()
            self.acts.park_poison()
            self._give_up_what_is_blocked()
        assert self.acts.live() == []
        self.the_database_says_what_the_model_says()
        self.nothing_definite_is_untrue()
        for flight in self.acts.flights:
            if flight.began:
                self.acts.arrive(flight)
        self.nothing_definite_is_untrue()
        reviewed = {o.reason for o in self.acts.all() if o.state is State.NEEDS_REVIEW}
        assert reviewed <= {"poison"}

    def _give_up_what_is_blocked(self) -> None:
        """Behind one that waits for a person nothing was ever sent: it is cancelled at once."""
        reviewed = {o.ordering_key for o in self.acts.all() if o.final is State.NEEDS_REVIEW} - {None}
        for operation in self.acts.live():
            if operation.ordering_key in reviewed:
                self.acts.cancel(operation)
