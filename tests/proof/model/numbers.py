"""Small numbers for sides and receivers, and what follows from each of them, worked out once."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from oncebox_models.states import CallKind, State
from tests.proof.model import receiver as receiving
from tests.proof.model.arrows import CLAIM, Change, is_arrow
from tests.proof.model.moves import moves, replied
from tests.proof.model.receiver import Effect, Receiver, Sender
from tests.proof.model.rows import Lease
from tests.proof.model.sender import Call, Protocol, Side, says
from tests.proof.model.wire import Reply

PACKETS: Final = {
    Sender.UNANSWERED: (1, CallKind.SEND),
    Sender.ANSWERED: (2, CallKind.SEND),
    Sender.SEALER: (4, CallKind.SEAL),
}
"""The packets of calls that are over: the bit that stands for each."""
_WHOSE: Final = {
    Sender.HELD: "the worker",
    Sender.STALE: "the stopped worker",
    Sender.UNANSWERED: "an earlier call",
    Sender.ANSWERED: "an answered call (a copy)",
    Sender.SEALER: "an earlier call",
}


class Claim(Enum):
    """What the first words of a sentence claim."""

    NOT_SENT = auto()
    NOT_CONFIRMED = auto()
    OPEN = auto()
    SAVED = auto()
    NEVER = auto()


_WORDS: Final = {
    "NOT SENT YET": Claim.NOT_SENT,
    "NOT CONFIRMED YET": Claim.NOT_CONFIRMED,
    "OUTCOME UNKNOWN": Claim.OPEN,
    "SAVED": Claim.SAVED,
    "REFUSED": Claim.NEVER,
    "NOT SAVED": Claim.NEVER,
}


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the sender's: the number of the side after it, and the bits of the packets that it leaves behind.

    sends: it claims a send.
    """

    told: str
    after: int
    change: Change | None
    bits: int
    became: tuple[tuple[Sender, Sender], ...]
    broken: str | None
    healthy: bool
    busy: bool
    sends: bool


@dataclass(frozen=True, slots=True)
class Event:
    """What happens at the receiver, and the number for it then. to: whose call waits for the reply; None: nobody's."""

    told: str
    after: int
    to: Sender | None
    reply: Reply | None
    broken: str | None
    healthy: bool


@dataclass(frozen=True, slots=True)
class Says:
    """What a side says. begun: a send of its calls may be on its way. doubtful: an earlier one. over: it has ended.

    packets: of its calls: whose, of what kind, and whether under a fresh key.
    """

    state: State
    words: str
    claim: Claim
    begun: bool
    doubtful: bool
    over: bool
    packets: tuple[tuple[Sender, CallKind, bool], ...]


class Numbers:
    """Sides and receivers of one protocol. `wanted`: the properties that are looked at."""

    def __init__(self, protocol: Protocol, wanted: frozenset[str]) -> None:
        self.protocol, self.wanted = protocol, wanted
        self.sides: list[Side] = []
        self.says: list[Says] = []
        self.receivers: list[Receiver] = []
        self._side_ids: dict[Side, int] = {}
        self._receiver_ids: dict[Receiver, int] = {}
        self._steps: dict[int, list[Step]] = {}
        self._events: dict[tuple[object, ...], list[Event]] = {}
        self._replied: dict[tuple[int, Sender, Reply | None], int] = {}
        self._renamed: dict[tuple[int, object], int] = {}

    def side(self, side: Side) -> int:
        """The number of a side."""
        found = self._side_ids.get(side)
        if found is None:
            found = self._side_ids[side] = len(self.sides)
            self.sides.append(side)
            self.says.append(self._say(side))
        return found

    def receiver(self, receiver: Receiver) -> int:
        """The number of a receiver."""
        receiver = receiving.normal(self.protocol.receiver, receiver)
        found = self._receiver_ids.get(receiver)
        if found is None:
            found = self._receiver_ids[receiver] = len(self.receivers)
            self.receivers.append(receiver)
        return found

    def steps(self, side_id: int) -> list[Step]:
        """What the sender can do from this side."""
        found = self._steps.get(side_id)
        if found is None:
            found = self._steps[side_id] = self._work_out(side_id)
        return found

    def replied(self, side_id: int, to: Sender, reply: Reply | None) -> int:
        """The side after a reply has come back; the same one if that changes nothing."""
        memo = (side_id, to, reply)
        found = self._replied.get(memo)
        if found is None:
            assert reply is not None
            after = replied(self.protocol, self.sides[side_id], to, reply)
            found = self._replied[memo] = side_id if after is None else self.side(after)
        return found

    def waits(self, side_id: int, to: Sender) -> bool:
        """Whether that call has heard nothing yet."""
        side = self.sides[side_id]
        call = side.held if to is Sender.HELD else side.stale
        return call is not None and call.reply is None

    def renamed(self, receiver_id: int, became: tuple[tuple[Sender, Sender], ...]) -> int:
        """The receiver whose transactions belong to calls that have other names now."""
        found = self._renamed.get((receiver_id, became))
        if found is None:
            receiver, names = self.receivers[receiver_id], dict(became)
            writing = receiver.writing and names.get(receiver.writing, receiver.writing)
            waiting = receiver.waiting and names.get(receiver.waiting, receiver.waiting)
            found = self.receiver(replace(receiver, writing=writing, waiting=waiting))
            self._renamed[receiver_id, became] = found
        return found

    def delivered(self, receiver_id: int, kind: CallKind, who: Sender, fresh_key: bool) -> list[Event]:
        """What a packet can do at the receiver."""
        memo = (receiver_id, kind, who, fresh_key)
        found = self._events.get(memo)
        if found is None:
            rules, receiver = self.protocol.receiver, self.receivers[receiver_id]
            effects = receiving.deliver(rules, receiver, kind, who, fresh_key=fresh_key)
            found = self._events[memo] = self._numbered(receiver_id, effects, who)
        return found

    def happening(self, receiver_id: int) -> list[Event]:
        """What can happen at the receiver without a packet."""
        found = self._events.get((receiver_id,))
        if found is None:
            receiver = self.receivers[receiver_id]
            effects = receiving.happen(self.protocol.receiver, receiver)
            who = receiver.writing or receiver.waiting
            found = self._events[receiver_id,] = self._numbered(receiver_id, effects, who)
        return found

    def _say(self, side: Side) -> Says:
        words = says(self.protocol, side.row)
        calls = [(who, call) for who, call in ((Sender.HELD, side.held), (Sender.STALE, side.stale)) if call]
        in_time = side.row.lease is Lease.LIVE
        return Says(
            self.protocol.state(side.row),
            words,
            _WORDS[words],
            begun=any(call.sends for _, call in calls),
            doubtful=any(call.sends and call.lapsed for _, call in calls),
            over=side.row.final is not None,
            packets=tuple(
                (who, call.kind, not self.protocol.one_key and call.entry.attempts > 1)
                for who, call in calls
                if call.began and (not self.protocol.calm or _prompt(who, call, in_time))
            ),
        )

    def _work_out(self, side_id: int) -> list[Step]:
        side, said = self.sides[side_id], self.says[side_id]
        found: list[Step] = []
        for move in moves(self.protocol, side):
            after = self.side(move.after)
            broken = [name for name in move.broken if name in self.wanted]
            change = Change(said.state, self.says[after].state, move.cause)
            moved = change.source is not change.target
            if moved and "arrows" in self.wanted and not is_arrow(change):
                broken.append("arrows")
            held = move.after.held
            found.append(
                Step(
                    move.told,
                    after,
                    change if moved else None,
                    sum(PACKETS[who][0] for who in move.left),
                    tuple(sorted(move.became.items())),
                    broken[0] if broken else None,
                    move.healthy,
                    move.busy,
                    sends=move.cause == CLAIM and held is not None and held.kind is CallKind.SEND,
                )
            )
        return found

    def _numbered(self, receiver_id: int, effects: Iterable[Effect], who: Sender | None) -> list[Event]:
        """Those that change something or break a property."""
        found: list[Event] = []
        for effect in effects:
            after = self.receiver(effect.receiver)
            broken = next((name for name in effect.broken if name in self.wanted), None)
            to = effect.to if effect.to in (Sender.HELD, Sender.STALE) else None
            if after != receiver_id or broken is not None or to is not None:
                told = effect.told.format(_WHOSE[who]) if who is not None else effect.told
                found.append(Event(told, after, to, effect.reply, broken, effect.healthy))
        return found


def _prompt(who: Sender, call: Call, in_time: bool) -> bool:
    return who is Sender.HELD and in_time and call.reply is None
