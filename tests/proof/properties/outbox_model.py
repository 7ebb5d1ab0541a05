"""What the outbox must know of an operation, from the calls it made: the meaning of the states, told once more.

Nothing here counts as the tables do. A state follows from which sends there were, and which of them have a verdict.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, assert_never
from uuid import UUID

from oncebox_models.outcomes import Answer, Outcome, Receipt
from oncebox_models.states import CallKind, State, Wanted

BUDGET: Final = 3
POISON_CLAIMS: Final = 3
ACCESS_LOST_AFTER: Final = 3


@dataclass(frozen=True, slots=True)
class Seen:
    """What a worker saw of an operation when it claimed it: its rules work with that."""

    wanted: Wanted
    unanswered: int
    answers: tuple[Outcome, ...]


@dataclass(slots=True)
class Operation:
    """One operation. `sends`: those that may have reached the receiver, and whether each has a verdict.

    `answers`: the outcomes in a row that did not settle it. `silent`: claims since the last of them.
    """

    id: UUID
    name: str
    text: str
    ordering_key: str | None
    passed: bool = False
    final: State | None = None
    reason: str | None = None
    receipt: Receipt | None = None
    wanted: Wanted = Wanted.DELIVER
    next_call: CallKind = CallKind.SEND
    call: UUID | None = None
    """The last claim's call, until its answer is written down."""
    calling: CallKind | None = None
    leased: bool = False
    sends: dict[UUID, bool] = field(default_factory=dict[UUID, bool])
    answers: list[Outcome] = field(default_factory=list[Outcome])
    silent: int = 0
    access_lost: bool = False
    stamped: bool = False

    @property
    def live(self) -> bool:
        return self.final is None

    @property
    def unanswered(self) -> int:
        return sum(not verdict for verdict in self.sends.values())

    @property
    def state(self) -> State:
        if self.final is not None:
            return self.final
        if self.access_lost:
            return State.NEEDS_REVIEW
        under_way = self.call if self.leased else None
        if any(not verdict for call, verdict in self.sends.items() if call != under_way):
            return State.UNKNOWN
        if under_way is not None:
            return State.SENDING
        return State.RETRYING if self.sends else State.PENDING

    @property
    def due_call(self) -> CallKind:
        return CallKind.SEAL if self.wanted is not Wanted.DELIVER or self.passed else self.next_call

    @property
    def unsent(self) -> bool:
        """Nothing can ever have reached the receiver."""
        return not self.sends and not self.leased

    # --- what happens to it --------------------------------------------------------------------------

    def claimed(self, call: UUID) -> Seen:
        kind = self.due_call
        self.call, self.calling, self.leased, self.stamped = call, kind, True, False
        self.silent += 1
        if kind is CallKind.SEND:
            self.sends[call] = False
            self.next_call = CallKind.STATUS
        else:
            self.next_call = kind
        if kind is CallKind.SEAL and self.wanted is Wanted.DELIVER:
            self.wanted, self.reason = Wanted.ABANDON, "expired"
        return Seen(self.wanted, self.unanswered, tuple(self.answers))

    def cancelled(self) -> None:
        if not self.live:
            return
        if self.unsent:
            self.settle(State.NOT_SAVED, "cancelled")
        elif self.wanted is Wanted.DELIVER:
            self._give_up(Wanted.ABANDON, "cancelled")
            self.stamped = False

    def asked_about(self) -> None:
        """A person wants to know: the next call is a question, where an answer to one is missing."""
        if self.wanted is Wanted.DELIVER and self.unanswered:
            self.next_call = CallKind.STATUS

    def settle(self, final: State, reason: str | None, receipt: Receipt | None = None) -> None:
        self.final, self.reason, self.receipt = final, reason, receipt
        self.call, self.leased = None, False

    def answered(self, call: UUID, kind: CallKind, seen: Seen, answer: Answer) -> None:
        """The answer to one of its calls is written down. Of a call that was overtaken, only a receipt counts."""
        if answer.outcome is Outcome.RECEIPT:
            if self.final is not State.SAVED:
                self.settle(State.SAVED, None, answer.receipt)
            return
        if self.final is not None or call != self.call:
            return
        if answer.outcome is Outcome.SEALED:
            self._sealed(seen, answer)
            return
        self._unsettled(call, kind, seen, answer)

    def _sealed(self, seen: Seen, answer: Answer) -> None:
        """Whoever wanted it when the call was made decides the word."""
        match seen.wanted:
            case Wanted.REFUSE:
                self.settle(State.REFUSED, self.reason)
            case Wanted.ABANDON:
                self.settle(State.NOT_SAVED, self.reason)
            case Wanted.DELIVER:
                self.settle(State.NOT_SAVED, "sealed_elsewhere")
            case _:
                assert_never(seen.wanted)

    def _unsettled(self, call: UUID, kind: CallKind, seen: Seen, answer: Answer) -> None:
        self.call, self.calling, self.leased, self.stamped, self.silent = None, None, False, False, 0
        if kind is CallKind.SEND:
            self._judge_send(call, answer.outcome)
        self._judge_access(seen, answer.outcome)
        self.answers.append(answer.outcome)
        follows = self._follows(kind, seen, answer)
        if self.wanted is not Wanted.DELIVER:
            self.next_call = CallKind.SEAL
        elif isinstance(follows, CallKind):
            self.next_call = follows
        else:
            self._give_up(*follows)

    def _judge_send(self, call: UUID, outcome: Outcome) -> None:
        """What an answer to a send says of that send."""
        if outcome is Outcome.NOT_SENT:
            del self.sends[call]
        elif outcome not in (Outcome.UNKNOWN, Outcome.IN_PROGRESS):
            self.sends[call] = True

    def _follows(self, kind: CallKind, seen: Seen, answer: Answer) -> CallKind | tuple[Wanted, str]:
        """The table of docs/state_machine.md: the next call, or giving it up and why."""
        match answer.outcome:
            case Outcome.REFUSED:
                return (Wanted.REFUSE, answer.reason) if kind is CallKind.SEND else kind
            case Outcome.GONE:
                return Wanted.ABANDON, "expired"
            case Outcome.UNAUTHENTICATED | Outcome.NOT_EXECUTED | Outcome.NOT_SENT:
                return kind
            case Outcome.NOT_FOUND:
                return self._spent(seen) or CallKind.SEND
            case Outcome.IN_PROGRESS | Outcome.UNKNOWN:
                return self._spent(seen) or CallKind.STATUS
            case Outcome.RECEIPT | Outcome.SEALED | Outcome.CONFLICT:
                raise AssertionError("these settle it")
            case _:
                assert_never(answer.outcome)

    def _spent(self, seen: Seen) -> tuple[Wanted, str] | None:
        """The budget of calls without a verdict, as the worker saw it."""
        return (Wanted.ABANDON, "budget_spent") if seen.unanswered >= BUDGET else None

    def _judge_access(self, seen: Seen, outcome: Outcome) -> None:
        if outcome is Outcome.UNAUTHENTICATED:
            last = seen.answers[-1:] == (Outcome.UNAUTHENTICATED,)
            self.access_lost |= last and len(seen.answers) + 1 >= ACCESS_LOST_AFTER
        elif outcome is not Outcome.NOT_SENT:
            self.access_lost = False

    def _give_up(self, wanted: Wanted, reason: str) -> None:
        self.wanted, self.reason, self.next_call = wanted, reason, CallKind.SEAL


def head_of_its_key(operation: Operation, all_: Iterable[Operation]) -> bool:
    """No earlier one of its key is live, and none of it waits for a person. `all_` is in the order of commits."""
    if operation.ordering_key is None:
        return True
    same = [other for other in all_ if other.ordering_key == operation.ordering_key]
    if any(other.final is State.NEEDS_REVIEW for other in same):
        return False
    return not any(other.live for other in same[: same.index(operation)])


def claimable(operation: Operation, all_: Iterable[Operation], *, alone: bool) -> bool:
    """Whether a worker that is handed it, alone or with others, takes it: everything is due in these histories."""
    if not operation.live or operation.leased:
        return False
    if not operation.sends and (operation.passed or operation.wanted is not Wanted.DELIVER):
        return False
    if operation.silent >= POISON_CLAIMS or (operation.silent >= 2 and not alone):
        return False
    return head_of_its_key(operation, all_)
