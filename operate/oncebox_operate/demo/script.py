"""What will happen in a demonstration, as values: chosen by a seed, before anything runs. Pure."""

import random
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

DEFAULT_OPS: Final = 300
DEFAULT_RATE: Final = 10.0
STORY_ID: Final = "note-7"


class FaultKind(StrEnum):
    """What can be broken. The values are the names of `--faults` and of the JSON."""

    LOST_REPLIES = "lost_replies"
    SLOW_REPLIES = "slow_replies"
    KILLED_WORKERS = "killed_workers"
    RESTARTED_NOTES = "restarted_notes"
    RESTARTED_BROKER = "restarted_broker"
    REPEATED_REQUESTS = "repeated_requests"

    @property
    def label(self) -> str:
        """For people."""
        match self:
            case FaultKind.LOST_REPLIES:
                return "lost replies"
            case FaultKind.SLOW_REPLIES:
                return "slow replies"
            case FaultKind.KILLED_WORKERS:
                return "killed workers"
            case FaultKind.RESTARTED_NOTES:
                return "note service restarts"
            case FaultKind.RESTARTED_BROKER:
                return "broker restarts"
            case FaultKind.REPEATED_REQUESTS:
                return "requests sent twice"
            case _:
                assert_never(self)


DEFAULT_FAULTS: Final = (
    FaultKind.LOST_REPLIES,
    FaultKind.SLOW_REPLIES,
    FaultKind.KILLED_WORKERS,
    FaultKind.RESTARTED_NOTES,
    FaultKind.RESTARTED_BROKER,
)

# Strikes at the default number of operations. More than are asked for: some may find nothing to strike.
_STRIKES: Final = {
    FaultKind.LOST_REPLIES: 18,
    FaultKind.SLOW_REPLIES: 14,
    FaultKind.KILLED_WORKERS: 3,
    FaultKind.RESTARTED_NOTES: 2,
    FaultKind.RESTARTED_BROKER: 2,
    FaultKind.REPEATED_REQUESTS: 10,
}
_REQUIRED: Final = {
    FaultKind.LOST_REPLIES: 10,
    FaultKind.KILLED_WORKERS: 2,
}
_ROLLED_BACK_SHARE: Final = 0.1
# Part of the time in which a kind strikes. A worker that is killed keeps its operations for a whole lease, and what
# is restarted late would meet no traffic any more on a slow machine.
_WINDOWS: Final = {
    FaultKind.LOST_REPLIES: (0.04, 0.92),
    FaultKind.SLOW_REPLIES: (0.04, 0.92),
    FaultKind.KILLED_WORKERS: (0.06, 0.62),
    FaultKind.RESTARTED_NOTES: (0.08, 0.78),
    FaultKind.RESTARTED_BROKER: (0.08, 0.78),
    FaultKind.REPEATED_REQUESTS: (0.04, 0.92),
}


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault, `at_s` seconds after the agent began."""

    at_s: float
    kind: FaultKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """How many operations are committed, how many a second, what breaks, and the seed that decides the rest."""

    ops: int = DEFAULT_OPS
    rate: float = DEFAULT_RATE
    faults: tuple[FaultKind, ...] = DEFAULT_FAULTS
    seed: int = 1

    @property
    def duration_s(self) -> float:
        return self.ops / self.rate

    @property
    def full_size(self) -> bool:
        """Large enough for the numbers that a demonstration of the default size promises."""
        return self.ops >= DEFAULT_OPS

    @property
    def rolled_back(self) -> int:
        """Transactions that the agent rolls back, on top of `ops`."""
        return round(self.ops * _ROLLED_BACK_SHARE)

    def required(self, kind: FaultKind) -> int:
        """How often a fault must have struck operations in flight."""
        return _REQUIRED.get(kind, 1) if self.full_size else 1

    @property
    def required_rolled_back(self) -> int:
        return 20 if self.full_size else self.rolled_back

    @property
    def required_reconciled(self) -> int:
        """Operations of unknown outcome that were settled by proof. Without a fault that makes them, none."""
        return 10 if self.full_size and FaultKind.LOST_REPLIES in self.faults else 0

    def strikes(self) -> list[Strike]:
        """When what breaks, in order. Strikes of a kind are spread over its window, with some chance."""
        chance = random.Random(f"strikes {self.seed}")
        planned: list[Strike] = []
        for kind in self.faults:
            # More of them in a larger demonstration, but a worker can be killed only so often in one.
            count = max(1, round(_STRIKES[kind] * min(self.ops / DEFAULT_OPS, 1.0)))
            begin, end = _WINDOWS[kind]
            step = (end - begin) / count
            planned += [
                Strike(self.duration_s * (begin + step * (number + chance.random())), kind)
                for number in range(count)
            ]
        return sorted(planned, key=lambda strike: strike.at_s)

    def roll_backs(self) -> frozenset[int]:
        """The numbers of those operations before which a transaction is rolled back."""
        chance = random.Random(f"roll-backs {self.seed}")
        return frozenset(chance.sample(range(1, self.ops), min(self.rolled_back, self.ops - 1)))


def faults_named(names: Collection[str]) -> tuple[FaultKind, ...]:
    """The faults of a list of names, in the table's order. Raises ValueError that shows which there are."""
    wanted = {name.strip().lower().replace("-", "_").replace(" ", "_") for name in names}
    unknown = sorted(wanted - set(FaultKind) - {"none"})
    if unknown or ("none" in wanted and len(wanted) > 1):
        raise ValueError(
            f"{', '.join(unknown or ['none'])}; there are: {', '.join(FaultKind)}, or none alone"
        )
    return tuple(kind for kind in FaultKind if kind in wanted)
