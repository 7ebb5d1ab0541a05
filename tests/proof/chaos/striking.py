"""All lanes of a plan at work, each in a thread of its own, and a record of what each strike met."""

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.proof.chaos.agents import Agents
from tests.proof.chaos.hand import Hand
from tests.proof.chaos.kinds import FaultKind, Lane
from tests.proof.chaos.parties.installation import LEASE_S, Installation
from tests.proof.chaos.plan import Plan, Strike, last_strike_s
from tests.proof.chaos.strikes import strike

_GAP_S: Final = 0.3


@dataclass(frozen=True, slots=True)
class Fault:
    """A strike as it happened, in seconds since the agents began. ended_s: its party works again."""

    kind: FaultKind
    began_s: float
    ended_s: float
    in_flight: int
    how: str


class Striking:
    """`start` it with the agents; `stop` lets what is broken be repaired. failures: of the lanes' threads."""

    def __init__(self, installation: Installation, agents: Agents, plan: Plan) -> None:
        self.faults: list[Fault] = []
        self.failures: list[BaseException] = []
        self.under_way: dict[Lane, FaultKind] = {}
        self._installation = installation
        self._agents = agents
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(lane, strikes), name=f"lane {lane}", daemon=True)
            for lane, strikes in plan.items()
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def missing(self, lane: Lane | None = None) -> list[FaultKind]:
        """Kinds, of one lane or of all, that have not struck operations in flight as often as they must."""
        met = Counter(fault.kind for fault in self.faults if fault.in_flight)
        return [
            kind
            for kind in FaultKind
            if lane in (None, kind.lane) and met[kind] < self._agents.size.required(kind)
        ]

    @property
    def done(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def stop(self, seconds: float) -> None:
        """No further strikes; wait until everything is repaired. A lane that takes longer is a failure."""
        self._over.set()
        limit = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(limit - time.monotonic(), 0.0))
            if thread.is_alive():
                self.failures.append(TimeoutError(f"{thread.name} is still at {self.under_way}"))

    def _run(self, lane: Lane, strikes: Sequence[Strike]) -> None:
        hand = Hand(self._installation, random.Random(f"hand {self._agents.size.seed} {lane}"), self._over)
        latest_s = last_strike_s(lane, self._agents.size, LEASE_S)
        try:
            queue = list(strikes)
            while queue and not self._over.is_set():
                one = queue.pop(0)
                if self._over.wait(max(one.at_s - self._agents.now_s(), 0.0)):
                    return
                if self._agents.now_s() > latest_s + _GAP_S and one.kind not in self.missing(lane):
                    continue
                if not self._strike(lane, one.kind, hand):
                    # There was nothing to strike at: once more, when its turn comes round.
                    queue.insert(min(1, len(queue)), Strike(0.0, one.kind))
                self._over.wait(_GAP_S)
        except BaseException as error:  # a thread's failure must reach whoever started it
            self.failures.append(error)
        finally:
            hand.close()

    def _strike(self, lane: Lane, kind: FaultKind, hand: Hand) -> bool:
        """False: it is worth another try."""
        began_s = self._agents.now_s()
        self.under_way[lane] = kind
        blow = strike(kind, hand, self._agents)
        del self.under_way[lane]
        self.faults.append(Fault(kind, began_s, self._agents.now_s(), blow.in_flight, blow.how))
        return blow.in_flight > 0 or not blow.possible
