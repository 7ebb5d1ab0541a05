"""What a person sees while a run goes on, a line every few seconds; and whoever ended by himself is started again."""

import sys
import time
from typing import Final

from tests.proof.chaos import eyes
from tests.proof.chaos.agents import Agents
from tests.proof.chaos.eyes import Eyes
from tests.proof.chaos.parties.installation import Installation
from tests.proof.chaos.striking import Striking

_LINE_S: Final = 5.0
_TEND_S: Final = 0.5


def tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


class Watch:
    """`until` waits, tells, and tends."""

    def __init__(self, installation: Installation, agents: Agents, striking: Striking) -> None:
        self._installation = installation
        self._agents = agents
        self._striking = striking
        self._eyes = Eyes(installation.sender_database)
        self._told_at = 0.0

    def drained(self) -> bool:
        """No operation has work left."""
        rows = self._eyes.rows(eyes.OPEN)
        return rows is not None and rows[0][0] == 0

    def turn(self) -> None:
        """Tend everybody, tell if it is time to, and rest a little."""
        self._tend()
        if time.monotonic() - self._told_at >= _LINE_S:
            self._told_at = time.monotonic()
            tell(self._line())
        self._installation.network.forget()
        time.sleep(_TEND_S)

    def close(self) -> None:
        self._eyes.close()

    def _tend(self) -> None:
        self._agents.tend()
        for role in self._installation.roles:
            if role.process.returncode() is not None and role.reserved.acquire(blocking=False):
                try:
                    role.tend()
                finally:
                    role.reserved.release()

    def _line(self) -> str:
        rows = self._eyes.rows(eyes.PROGRESS)
        at = self._agents.now_s()
        if rows is None:
            counts = "the sender's database does not answer"
        else:
            enqueued, saved, open_, unknown = rows[0]
            counts = f"{enqueued:6,} enqueued  {saved:6,} saved  {open_:5,} open  {unknown:4,} unknown"
        faults = [fault for fault in self._striking.faults if fault.in_flight]
        now = ", ".join(sorted(self._striking.under_way.values())) or "nothing"
        return f"{at:6.0f} s  {counts}  {len(faults):3} faults; now: {now}"
