"""The agents of a run: several processes with clocks that disagree, killed and started again like everybody else."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.proof.chaos import ledgers
from tests.proof.chaos.ledgers import Did
from tests.proof.chaos.parties.installation import SKEW_S, Installation
from tests.proof.chaos.parties.spawning import Role
from tests.proof.chaos.plan import Size
from tests.proof.chaos.wishes import Wish, wish

AGENTS: Final = 5
_SKEWED: Final = {2: SKEW_S, 3: -SKEW_S}
SKEWED_AGENTS: Final = {f"agent-{number}": seconds for number, seconds in _SKEWED.items()}
_FIRST_S: Final = 2.0
"""Time for the processes to start before the first wish."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What the agents' ledgers say: every wish with its last word."""

    wishes: Sequence[tuple[Wish, Did]]

    def ids(self, did: Did) -> set[str]:
        return {
            operation_id for one, last in self.wishes if last == did for operation_id in one.operation_ids
        }


class Agents:
    """`start` them; `began` is the moment, by the monotonic clock, of their first wishes."""

    def __init__(self, installation: Installation, size: Size, statements: Path) -> None:
        self.size = size
        self.began = 0.0
        self.roles: list[Role] = []
        self.pace = transactions_a_second(size)
        self.count = int(size.longest_seconds * self.pace)
        self._stop = installation.folder / "agents-stop"
        self._installation = installation
        self._statements = statements

    def start(self) -> None:
        self.began = time.monotonic() + _FIRST_S
        epoch = time.time() - time.monotonic()
        for number in range(AGENTS):
            role = Role(
                self._installation.nursery,
                f"agent-{number}",
                [
                    *(sys.executable, "-m", "tests.proof.chaos.agent"),
                    *(str(number), str(self.size.seed), str(self.count), repr(self.pace)),
                    *(repr(self.began), repr(epoch)),
                    *(str(self._ledger(number)), str(self._statements), str(self._stop)),
                ],
                self._installation.agents_environment(_SKEWED.get(number, 0)),
                lambda _: True,
            )
            role.launch()
            self.roles.append(role)

    def stop(self) -> None:
        """Each finishes the wish that it is at; those that an outage made wait come first."""
        self._stop.write_text(repr(self.now_at()), encoding="ascii")

    def tend(self) -> None:
        """Start again whoever ended before its last wish."""
        for role in self.roles:
            if role.process.returncode() not in (None, 0) and role.reserved.acquire(blocking=False):
                try:
                    role.tend()
                finally:
                    role.reserved.release()

    @property
    def done(self) -> bool:
        """Every wish that they have begun has its end."""
        return all(role.process.returncode() == 0 for role in self.roles)

    def now_s(self) -> float:
        """Seconds since the first wishes."""
        return time.monotonic() - self.began

    def now_at(self) -> float:
        """The number of the wish that is due now."""
        return self.now_s() * self.pace

    def kept(self) -> Kept:
        """What they know, for when they are done."""
        return Kept(
            [
                (wish(self.size.seed, number, one), did)
                for number in range(AGENTS)
                for one, did in sorted(ledgers.read(self._ledger(number)).items())
            ]
        )

    def open_wish(self, number: int) -> int:
        """How many operations the wish holds that an agent has begun and not ended; 0 for none."""
        last = ledgers.read(self._ledger(number))
        begun = [one for one, did in last.items() if did == "begun"]
        return len(wish(self.size.seed, number, begun[-1]).operation_ids) if begun else 0

    def _ledger(self, number: int) -> Path:
        return self._installation.folder / f"agent-{number}.ledger"


def transactions_a_second(size: Size) -> float:
    """Of each agent, so that all of them together commit `size.rate` operations a second."""
    sample = [wish(size.seed, agent, number) for agent in range(AGENTS) for number in range(2000)]
    committed = sum(len(one.operation_ids) for one in sample if not one.rolled_back)
    return size.rate / AGENTS / (committed / len(sample))
