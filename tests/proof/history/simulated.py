"""A small world that tells the truth: operations that meet all kinds of luck, and anybody who asks at any moment.

It knows the protocol, and nothing of the rules. Time is counted in ticks of 1/1024 s, which no float rounds.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Literal, NamedTuple, TypeAlias

from oncebox_models.states import State
from tests.proof.history.indexed import EXIT_CODES
from tests.proof.history.statements import (
    AbsentSaid,
    EnqueueSaid,
    ExitSaid,
    Key,
    LagSaid,
    ReceiverSaid,
    ReceiverState,
    Said,
    Statement,
    StateSaid,
)
from tests.proof.history.story import WORDS
from tests.proof.history.truth import Ledger, Note, Operation

TICKS: Final = 1024


class Luck(Enum):
    """What becomes of the next call for an operation, or of the wish for it."""

    EXECUTED = auto()
    REPLY_LOST = auto()
    LOST = auto()
    LATE = auto()
    """The packet arrives long after everybody has given up waiting for the answer."""
    TURNED_AWAY = auto()
    NOT_SENT = auto()
    REFUSED = auto()
    ACCESS_LOST = auto()
    CANCELLED = auto()


class Step(NamedTuple):
    """One thing that happens, with how many ticks pass before, during and after it."""

    luck: Luck
    before: int
    during: int
    after: int


Asked: TypeAlias = Literal["state", "receiver", "status", "wait", "enqueue", "lag"]


class Question(NamedTuple):
    """Somebody asks: begins at a tick, and what is read is as it is `until` ticks later; the answer takes `back` ticks."""

    what: Asked
    about: int
    asked: int
    until: int
    back: int


@dataclass(slots=True)
class Life:
    """An operation from its enqueue on. `moves`: from which tick on it is in which state, with how many attempts."""

    key: Key
    created: int
    committed: int
    confirmed: int
    moves: list[tuple[int, State, int]] = field(default_factory=list[tuple[int, State, int]])
    note: int | None = None
    sealed: int | None = None
    packet: int | None = None
    by_call: bool = False

    def at(self, tick: int) -> tuple[State, int | None] | None:
        """State and attempts as everybody sees them at a tick; None before the commit."""
        seen = [(state, attempts) for since, state, attempts in self.moves if since <= tick]
        if not seen:
            return None
        state, attempts = seen[-1]
        return state, None if state in (State.SAVED, State.REFUSED, State.NOT_SAVED) else attempts

    def open(self, tick: int) -> bool:
        """Whether it has work left at a tick."""
        known = self.at(tick)
        return known is not None and known[1] is not None

    @property
    def receipt(self) -> str:
        named = {"id": f"of-{self.key.operation_id}", "version": 1, "folder": "drafts", "etag": "e"}
        return json.dumps({"operation_id": self.key.operation_id, "args_hash": "a" * 64, "note": named})


def lived(number: int, created: int, took: int, confirmed_after: int, steps: Sequence[Step]) -> Life:
    """The life of an operation whose transaction begins at a tick and takes some."""
    committed = created + took
    key = Key("demo", "researcher", f"note-{number}")
    life = Life(key, created, committed, committed + confirmed_after, [(committed, State.PENDING, 0)])
    now, attempts, doubts = committed, 0, False
    for step in steps:
        now, attempts, doubts, over = _happens(life, step, now, attempts, doubts)
        if over:
            break
    if life.packet is not None:
        _arrives(life, life.packet)
    return life


def _happens(life: Life, step: Step, now: int, attempts: int, doubts: bool) -> tuple[int, int, bool, bool]:
    """After the step: tick, attempts, whether a call is without a verdict, and whether it is over."""
    began = now + step.before
    met = began + step.during
    ended = met + step.after
    if step.luck is Luck.CANCELLED and attempts == 0:
        life.moves.append((ended, State.NOT_SAVED, 0))
        return ended, attempts, doubts, True
    if step.luck in (Luck.CANCELLED, Luck.REFUSED) and not (step.luck is Luck.REFUSED and doubts):
        attempts += step.luck is Luck.REFUSED
        life.moves.append((began, State.UNKNOWN if doubts else State.SENDING, attempts))
        _seals(life, met, ended, State.REFUSED if step.luck is Luck.REFUSED else State.NOT_SAVED, attempts)
        return ended, attempts, doubts, True
    attempts += not doubts
    life.moves.append((began, State.UNKNOWN if doubts else State.SENDING, attempts))
    match step.luck:
        case Luck.EXECUTED:
            # After a doubt: asked first, and sent again under the same key if the answer is "not found".
            _arrives(life, met)
            if life.sealed is None:
                life.by_call = True
                life.moves.append((ended, State.SAVED, attempts))
                return ended, attempts, doubts, True
        case Luck.REPLY_LOST:
            _arrives(life, met)
            doubts = True
        case Luck.LOST:
            doubts = True
        case Luck.LATE:
            life.packet = min(life.packet or ended + 50, ended + 50)
            doubts = True
        case Luck.NOT_SENT:
            attempts -= not doubts
        case Luck.ACCESS_LOST:
            life.moves.append((ended, State.NEEDS_REVIEW, attempts))
            ended += 5
        case _:
            pass
    waits = State.UNKNOWN if doubts else State.RETRYING if attempts else State.PENDING
    life.moves.append((ended, waits, attempts))
    return ended, attempts, doubts, False


def _arrives(life: Life, tick: int) -> None:
    """A packet of this key is at the receiver."""
    first = min(tick, life.packet) if life.packet is not None else tick
    if life.note is None and (life.sealed is None or first < life.sealed):
        life.note = first


def _seals(life: Life, met: int, ended: int, end: State, attempts: int) -> None:
    if life.packet is not None and life.packet <= met:
        _arrives(life, life.packet)
    life.by_call = True
    if life.note is not None:
        life.moves.append((ended, State.SAVED, attempts))
    else:
        life.sealed = met
        life.moves.append((ended, end, attempts))


def told(lives: Sequence[Life], questions: Iterable[Question]) -> list[Statement]:
    """What everybody is told: the agents of their enqueues, the others of what they ask."""
    confirmed = [
        _statement("agent", life.created, life.confirmed, EnqueueSaid(life.key, True, State.PENDING))
        for life in lives
    ]
    answered = [
        _statement("watcher", question.asked, question.asked + question.until + question.back, body)
        for question in questions
        for body in answers(lives, question.what, question.about, question.asked + question.until)
    ]
    return [*confirmed, *answered]


def answers(lives: Sequence[Life], what: Asked, about: int, tick: int) -> list[Said]:
    """What is read at a tick."""
    if what == "lag":
        return [lag(lives, tick)]
    life = lives[about % len(lives)]
    if what == "receiver":
        return [_of_receiver(life, tick)]
    known = life.at(tick)
    if known is None:
        return [] if what == "enqueue" else [AbsentSaid(life.key)]
    state, attempts = known
    receipt = life.receipt if state is State.SAVED else None
    said = StateSaid(life.key, state, WORDS[state], receipt, attempts)
    match what:
        case "state":
            return [said]
        case "enqueue":
            return [EnqueueSaid(life.key, False, state, receipt)]
        case "status" | "wait":
            (code,) = (code for code, states in EXIT_CODES[what].items() if state in states)
            return [said, ExitSaid(life.key, what, code, state)]


def lag(lives: Sequence[Life], tick: int) -> LagSaid:
    """All that has work left at a tick."""
    open_ = [life for life in lives if life.open(tick)]
    states = [known[0] for life in open_ if (known := life.at(tick))]
    oldest = max((tick - life.created for life in open_), default=0)
    return LagSaid(
        len(open_), round(oldest / TICKS, 3), {state: states.count(state) for state in set(states)}
    )


def ledger(lives: Iterable[Life]) -> Ledger:
    """What is there in the end."""
    notes: dict[Key, tuple[Note, ...]] = {}
    sealed: dict[Key, float] = {}
    operations: dict[Key, Operation] = {}
    for life in lives:
        since, state, attempts = life.moves[-1]
        over = state in (State.SAVED, State.REFUSED, State.NOT_SAVED)
        if not over:
            state = State.UNKNOWN if attempts else State.PENDING
        if life.note is not None:
            notes[life.key] = (
                Note(f"of-{life.key.operation_id}", 1, "drafts", "e", "a" * 64, life.note / TICKS),
            )
        if life.sealed is not None:
            sealed[life.key] = life.sealed / TICKS
        operations[life.key] = Operation(
            state,
            "a" * 64,
            life.receipt if state is State.SAVED else None,
            life.created / TICKS,
            since / TICKS if over else math.inf,
            life.by_call,
        )
    return Ledger(notes, sealed, operations)


def _of_receiver(life: Life, tick: int) -> ReceiverSaid:
    state: ReceiverState = "not_found"
    if life.note is not None and life.note - 2 <= tick:
        state = "completed" if life.note <= tick else "in_progress"
    elif life.sealed is not None and life.sealed <= tick:
        state = "sealed"
    return ReceiverSaid(life.key, state, life.receipt if state == "completed" else None)


def _statement(who: str, asked: int, answered: int, body: Said) -> Statement:
    return Statement(who, asked / TICKS, answered / TICKS, body)
