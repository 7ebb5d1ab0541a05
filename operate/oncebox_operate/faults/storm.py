"""A storm: which fault the n-th exchange meets, decided by a seed alone."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final, Literal

Then = Literal["hang", "reset"]
SECONDS: Final = (0.05, 1.0)


class Fault(Enum):
    """All that can happen to an exchange."""

    HOLD = "hold"
    REORDER = "reorder"
    DELAY = "delay"
    LOSE = "lose"
    ANSWER = "answer"
    REPEAT = "repeat"
    DOUBLE = "double"
    COPY_LATE = "copy late"
    HOLD_REPLY = "hold reply"
    SLOW = "slow"
    SWALLOW = "swallow"
    TRUNCATE = "truncate"


PLANNABLE: Final = frozenset(Fault) - {Fault.HOLD, Fault.HOLD_REPLY, Fault.REORDER, Fault.ANSWER}
"""Those that need nothing but their turn: nobody to release them, no words of their own."""


@dataclass(frozen=True, slots=True)
class Gust:
    """What one exchange meets. `fault` None: nothing. The rest is what the fault needs of it."""

    fault: Fault | None
    then: Then = "hang"
    seconds: float = 0.0
    keep: int = 0


@dataclass(frozen=True, slots=True)
class Storm:
    """``Storm(7, {Fault.SWALLOW: 2, Fault.SLOW: 1}, calm=7)``: of ten exchanges two lose their reply, one gets it
    late, and seven are left alone, on average. The n-th (from 0) meets ``storm.gust(n)``, always the same.

    ``seconds``: the shortest and the longest delay. ``resets``: how many of those that get no reply have their
    connection reset; the others' hangs. ``keep``: up to how many bytes of a truncated reply arrive. Raises ValueError
    for a fault that cannot be planned, or weights that are no weights.
    """

    seed: int
    weights: Mapping[Fault, float]
    calm: float = 0.0
    seconds: tuple[float, float] = SECONDS
    resets: float = 0.5
    keep: int = 120
    _steps: tuple[tuple[float, Fault | None], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if unplannable := [fault.value for fault in self.weights if fault not in PLANNABLE]:
            raise ValueError(f"cannot be planned: {', '.join(unplannable)}")
        weights = [*self.weights.values(), self.calm]
        if min(weights) < 0 or sum(weights) <= 0:
            raise ValueError("weights are not negative, and one is more than 0")
        # In one order, however the caller wrote them down.
        by_name = sorted(self.weights.items(), key=lambda item: item[0].value)
        steps, total = list[tuple[float, Fault | None]](), 0.0
        for fault, weight in (*by_name, (None, self.calm)):
            total += weight
            steps.append((total, fault))
        object.__setattr__(self, "weights", MappingProxyType(dict(self.weights)))
        object.__setattr__(self, "_steps", tuple(steps))

    def gust(self, n: int) -> Gust:
        """What the n-th exchange meets. A pure function of the storm and n."""
        # Only `random()` gives the same numbers in every version of Python.
        chance = random.Random(f"storm {self.seed} {n}")
        at = chance.random() * self._steps[-1][0]
        fault = next((fault for limit, fault in self._steps if at < limit), None)
        least, most = self.seconds
        return Gust(
            fault,
            then="reset" if chance.random() < self.resets else "hang",
            seconds=least + (most - least) * chance.random(),
            keep=int(self.keep * chance.random()),
        )
