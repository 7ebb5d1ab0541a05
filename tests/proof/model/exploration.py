"""Breadth first through everything that can happen.

A state is the sender's side, the receiver, and the packets of calls that are over, as one integer. A packet, once sent,
may arrive at any time, any number of times, or never: so packets need no counting, and losing one needs no step.
"""

import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from oncebox_models.states import State
from tests.proof.model.arrows import Change
from tests.proof.model.numbers import PACKETS, Claim, Event, Numbers
from tests.proof.model.receiver import Receiver, Record, Sender
from tests.proof.model.sender import Protocol, Side

_UNANSWERED: Final = PACKETS[Sender.UNANSWERED][0]
_SENDS: Final = _UNANSWERED | PACKETS[Sender.ANSWERED][0]
_LOOSE: Final = tuple(
    tuple((who, kind) for who, (bit, kind) in PACKETS.items() if bits & bit) for bits in range(8)
)
"""By the bits of a state: the packets of calls that are over."""
_RECEIVERS: Final = 1 << 13
"""Room for receivers in a state; there are dozens."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a trace: what happens, and what is said and true afterwards."""

    told: str
    state: State
    words: str
    record: Record
    notes: int


@dataclass(frozen=True, slots=True)
class Found:
    """A broken property with a shortest way there."""

    broken: str
    trace: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Explored:
    """What an exploration saw. changes: of the state that people see, with their cause. seen: what was said and true.

    seconds: of the processor.
    """

    states: int
    transitions: int
    seconds: float
    changes: frozenset[Change]
    seen: frozenset[tuple[State, str, Record, int]]
    found: Found | None


class _Broken(Exception):
    """A property does not hold in the state `index`, or after a step `told` from there that leads to `after`."""

    def __init__(self, name: str, index: int, told: str = "", after: tuple[int, int] | None = None) -> None:
        super().__init__(name)
        self.name, self.index, self.told, self.after = name, index, told, after


class Exploration:
    """One exploration of one protocol. It stops at the first broken property among `wanted`."""

    def __init__(self, protocol: Protocol, wanted: frozenset[str]) -> None:
        self._protocol, self._wanted = protocol, wanted
        self._numbers = Numbers(protocol, wanted)
        self._indexes: dict[int, int] = {}
        self._states = array("q")
        self._parents = array("i")
        self._told: list[str] = []
        self._healthy_from, self._healthy_to = array("i"), array("i")
        self._changes: set[Change] = set()
        self._transitions = 0

    def run(self) -> Explored:
        """Look at everything, or as much as is needed to find something broken."""
        began = time.process_time()
        numbers, found = self._numbers, None
        try:
            self._reach(numbers.side(Side()), numbers.receiver(Receiver()), 0, -1, "it is enqueued")
            index = 0
            while index < len(self._states):
                self._expand(index)
                index += 1
            if "ends" in self._wanted:
                self._check_ends()
        except _Broken as broken:
            found = Found(broken.name, self._trace(broken))
        return Explored(
            len(self._states),
            self._transitions,
            time.process_time() - began,
            frozenset(self._changes),
            frozenset((line.state, line.words, line.record, line.notes) for line in self._lines()),
            found,
        )

    def _expand(self, index: int) -> None:
        state = self._states[index]
        side_id, receiver_id, bits = state >> 16, (state >> 3) % _RECEIVERS, state & 7
        numbers, calm = self._numbers, self._protocol.calm
        receiver = numbers.receivers[receiver_id]
        busy, waits = receiver.writing is not None, receiver.waiting is not None
        if not (calm and busy):
            for step in numbers.steps(side_id):
                if step.busy and not busy:
                    continue
                if step.broken is not None:
                    raise _Broken(step.broken, index, step.told, (step.after, receiver_id))
                if step.sends and calm and receiver.record is Record.OURS:
                    self._break("asked_before_sent_again", index, step.told, (step.after, receiver_id))
                if step.change is not None:
                    self._changes.add(step.change)
                became = receiver_id
                if step.became and (busy or waits):
                    became = numbers.renamed(receiver_id, step.became)
                self._reach(step.after, became, bits | step.bits, index, step.told, healthy=step.healthy)
        for who, kind, fresh_key in numbers.says[side_id].packets:
            self._happen(index, side_id, bits, numbers.delivered(receiver_id, kind, who, fresh_key))
        if not calm:
            for who, kind in _LOOSE[bits]:
                self._happen(index, side_id, bits, numbers.delivered(receiver_id, kind, who, False))
        self._happen(index, side_id, bits, numbers.happening(receiver_id))

    def _happen(self, index: int, side_id: int, bits: int, events: Sequence[Event]) -> None:
        for event in events:
            if event.broken is not None:
                raise _Broken(event.broken, index, event.told, (side_id, event.after))
            if event.to is not None:
                answered = self._numbers.replied(side_id, event.to, event.reply)
                self._reach(answered, event.after, bits, index, event.told, healthy=event.healthy)
                if answered == side_id or self._numbers.waits(side_id, event.to):
                    continue  # a reply that is lost is a worker who hears nothing: that is a step of its own
            self._reach(side_id, event.after, bits, index, event.told, healthy=event.healthy)

    def _reach(
        self, side_id: int, receiver_id: int, bits: int, parent: int, told: str, *, healthy: bool = False
    ) -> None:
        state = (side_id << 16) | (receiver_id << 3) | bits
        self._transitions += 1
        index = self._indexes.get(state)
        if index is None:
            index = self._indexes[state] = len(self._states)
            self._states.append(state)
            self._parents.append(parent)
            self._told.append(told)
            self._check(index, side_id, receiver_id, bits)
        if healthy and index != parent:
            self._healthy_from.append(parent)
            self._healthy_to.append(index)

    def _check(self, index: int, side_id: int, receiver_id: int, bits: int) -> None:
        """Everything that could be said in this state is true."""
        said, receiver = self._numbers.says[side_id], self._numbers.receivers[receiver_id]
        notes, claim = receiver.notes, said.claim
        if notes > 1:
            self._break("one_note", index)
        if (notes and (claim is Claim.NEVER or receiver.promised)) or (claim is Claim.SAVED and notes != 1):
            self._break("definite", index)
        if claim is Claim.NOT_SENT and (notes or bits & _SENDS or said.begun):
            self._break("true_words", index)
        if claim is Claim.NOT_CONFIRMED:
            # A copy of a packet that was answered may have made the note; where packets are prompt, there is none.
            made = notes and self._protocol.calm and said.state is State.RETRYING
            if bits & _UNANSWERED or said.doubtful or made:
                self._break("true_words", index)

    def _break(self, name: str, index: int, told: str = "", after: tuple[int, int] | None = None) -> None:
        if name in self._wanted:
            raise _Broken(name, index, told, after)

    def _check_ends(self) -> None:
        """Each state has a healthy way to an end."""
        into: list[list[int]] = [[] for _ in self._states]
        for source, target in zip(self._healthy_from, self._healthy_to, strict=True):
            into[target].append(source)
        says = self._numbers.says
        ends = [index for index, state in enumerate(self._states) if says[state >> 16].over]
        reached = bytearray(len(self._states))
        for index in ends:
            reached[index] = 1
        while ends:
            for source in into[ends.pop()]:
                if not reached[source]:
                    reached[source] = 1
                    ends.append(source)
        if (stuck := reached.find(0)) >= 0:
            raise _Broken("ends", stuck)

    def _trace(self, broken: _Broken) -> tuple[Line, ...]:
        lines = [] if broken.after is None else [self._line(broken.told, *broken.after)]
        index = broken.index
        while index >= 0:
            state = self._states[index]
            lines.append(self._line(self._told[index], state >> 16, (state >> 3) % _RECEIVERS))
            index = self._parents[index]
        return tuple(reversed(lines))

    def _lines(self) -> set[Line]:
        """What was said and true, wherever."""
        return {
            self._line("", side_id, receiver_id)
            for side_id, receiver_id in {(state >> 16, (state >> 3) % _RECEIVERS) for state in self._states}
        }

    def _line(self, told: str, side_id: int, receiver_id: int) -> Line:
        said, receiver = self._numbers.says[side_id], self._numbers.receivers[receiver_id]
        return Line(told, said.state, said.words, receiver.record, receiver.notes)
