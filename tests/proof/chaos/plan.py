"""When what breaks: decided by a seed alone, with room in every lane for each fault and the way back from it."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.proof.chaos.kinds import ONCE, TAKES_S, FaultKind, Lane

FULL_SECONDS: Final = 900.0
"""A run of this length or more must meet the full numbers."""
FULL_OF_EACH_KIND: Final = 8
FULL_FAULTS: Final = 150
_SPARE: Final = 2
"""Strikes more than are asked for, in a full run: one may find nothing in flight until its time is over."""
_FIRST_S: Final = 2.0
_GAP_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Size:
    """How long operations are enqueued, how many a second, and the seed that decides the rest."""

    seconds: float
    rate: float
    seed: int

    def __post_init__(self) -> None:
        if self.seconds < 30 or self.rate <= 0:
            raise ValueError("a run lasts 30 s or more, and enqueues something")

    @property
    def full(self) -> bool:
        return self.seconds >= FULL_SECONDS

    @property
    def longest_seconds(self) -> float:
        """A slow machine gets more time, while some kind has not struck as often as it must."""
        return self.seconds * 1.5

    @property
    def operations(self) -> int:
        """How many are committed at most."""
        return int(self.longest_seconds * self.rate)

    def required(self, kind: FaultKind) -> int:
        """How often the kind must have struck operations in flight."""
        if kind in ONCE:
            return 1
        return max(1, math.floor(FULL_OF_EACH_KIND * min(self.seconds / FULL_SECONDS, 1.0)))

    @property
    def required_faults(self) -> int:
        """How many faults there must have been altogether, each with operations in flight."""
        of_each = sum(self.required(kind) for kind in FaultKind)
        return max(FULL_FAULTS, of_each) if self.full else of_each

    def planned(self, kind: FaultKind) -> int:
        """How often it is to strike."""
        if kind in ONCE:
            return 1
        wanted = (FULL_OF_EACH_KIND + _SPARE) * self.seconds / FULL_SECONDS
        return max(self.required(kind), math.floor(wanted))


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault, `at_s` seconds after the agents began."""

    at_s: float
    kind: FaultKind


Plan = Mapping[Lane, Sequence[Strike]]


def last_strike_s(lane: Lane, size: Size, lease_s: float) -> float:
    """Until when a fault of the lane may begin: what it leaves behind must drain while the run still lasts."""
    match lane:
        case Lane.WORKERS:
            # What a dead worker holds lies still for a whole lease.
            return size.seconds - lease_s - 8.0
        case Lane.ZOMBIES:
            return size.seconds - lease_s - 10.0
        case Lane.SENDER_DATABASE:
            return size.seconds - 10.0
        case Lane.BROKER | Lane.NOTES_DATABASE | Lane.NOTES:
            return size.seconds - 6.0
        case Lane.RELAYS | Lane.NETWORK | Lane.AGENTS:
            return size.seconds - 3.0


def plan(size: Size, lease_s: float) -> Plan:
    """For each lane its strikes in order. Those of a lane never overlap as far as `TAKES_S` is right."""
    return {lane: _of_lane(lane, size, lease_s) for lane in Lane}


def _of_lane(lane: Lane, size: Size, lease_s: float) -> list[Strike]:
    chance = random.Random(f"chaos {size.seed} {lane}")
    order = _order([kind for kind in FaultKind if kind.lane is lane], size, chance)
    # The last one may begin when the lane closes; those before it need their time.
    needed = sum(TAKES_S[kind] + _GAP_S for kind in order[:-1])
    spare = max(last_strike_s(lane, size, lease_s) - _FIRST_S - needed, 0.0)
    # Cut the spare time at random places: the pauses before each strike.
    cuts = sorted(chance.random() * spare for _ in order)
    strikes: list[Strike] = []
    used = _FIRST_S
    for kind, cut in zip(order, cuts, strict=True):
        strikes.append(Strike(round(used + cut, 3), kind))
        used += TAKES_S[kind] + _GAP_S
    return strikes


def _order(kinds: Sequence[FaultKind], size: Size, chance: random.Random) -> list[FaultKind]:
    """Every kind once in each round, in another order each time: no kind waits for the end of the run."""
    rounds = max(size.planned(kind) for kind in kinds)
    order: list[FaultKind] = []
    for number in range(rounds):
        due = [kind for kind in kinds if number < size.planned(kind)]
        chance.shuffle(due)
        order += due
    return order
