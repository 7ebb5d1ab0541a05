"""What the agents do in each transaction: a pure function of seed, agent and number, so that everybody knows it."""

import random
from dataclasses import dataclass
from typing import Final

TENANT: Final = "demo"
PRINCIPAL: Final = "researcher"
DESTINATION: Final = "notes"
FOLDER: Final = "drafts"

_SIZES: Final = (1, 1, 1, 2, 3, 5, 8)
MEAN_SIZE: Final = sum(_SIZES) / len(_SIZES)
_ROLLED_BACK: Final = 0.08
_ORDERED: Final = 0.10
_THREADS: Final = 3
_SENTENCE: Final = "Reef {place} recovers faster than its neighbours: {fish} grazing fish in a frame. "


@dataclass(frozen=True, slots=True)
class Wish:
    """One transaction: the notes that it wants, whether the agent then rolls it back, and the order they belong to."""

    agent: int
    number: int
    operation_ids: tuple[str, ...]
    texts: tuple[str, ...]
    rolled_back: bool
    ordering_key: str | None

    @property
    def title(self) -> str:
        return f"Finding {self.number} of agent {self.agent}"


def wish(seed: int, agent: int, number: int) -> Wish:
    """The `number`-th transaction of an agent."""
    chance = random.Random(f"wish {seed} {agent} {number}")
    size = chance.choice(_SIZES)
    return Wish(
        agent,
        number,
        tuple(f"a{agent}-{number:06d}-{place}" for place in range(size)),
        tuple(
            _SENTENCE.format(place=f"{agent}.{number}.{place}", fish=chance.randrange(10, 99))
            * chance.randrange(1, 12)
            for place in range(size)
        ),
        rolled_back=chance.random() < _ROLLED_BACK,
        ordering_key=f"agent-{agent}-{chance.randrange(_THREADS)}" if chance.random() < _ORDERED else None,
    )
