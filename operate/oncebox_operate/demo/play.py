"""A demonstration from its first line to its proof."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from oncebox_models.states import State
from oncebox_operate.demo import proof, statements, story
from oncebox_operate.demo.agent import Agent
from oncebox_operate.demo.corpus import ResearchNote
from oncebox_operate.demo.proof import Proof
from oncebox_operate.demo.screen import DemoScreen, Look
from oncebox_operate.demo.script import Script
from oncebox_operate.demo.stage import Stage
from oncebox_operate.demo.strikes import Striker
from oncebox_outbox import insights
from oncebox_outbox.errors import OutboxError

_TICK_S: Final = 0.2
_SETTLING_S: Final = 120.0
"""Longest time from the agent's last operation to the end of all. A killed worker's lease alone lasts 21 s."""


def play(
    stage: Stage, script: Script, notes: Sequence[ResearchNote], screen: DemoScreen, began: float
) -> Proof:
    """Play it on an open stage. `began`: when it was started, on the monotonic clock."""
    with stage.engine.connect() as connection:
        connection.execute(statements.FINDINGS)
    agent = Agent(stage, script, notes)
    striker = Striker(stage, script, screen.said)
    for line in story.tell(stage, agent):
        screen.line(line)
    screen.line(
        f"\nNow {script.ops:,} notes, {script.rate:g} a second, while things break (seed {script.seed}).\n",
        "bold",
    )
    scene = _Scene(stage, agent, striker, screen, time.monotonic())
    try:
        agent.start()
        striker.start()
        scene.until(lambda: agent.done and striker.done, script.duration_s + _SETTLING_S)
        scene.until(scene.settled, _SETTLING_S)
    finally:
        agent.stop()
        striker.stop()
    for failure in (agent.failure, striker.failure):
        if failure is not None:
            raise failure
    return proof.collect(stage, agent.rolled_back, striker.struck(), time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class _Scene:
    """What goes on while the agent works: parts are tended, and the table is kept up to date."""

    stage: Stage
    agent: Agent
    striker: Striker
    screen: DemoScreen
    began: float

    def until(self, over: Callable[[], bool], limit_s: float) -> None:
        """Go on until it is over; after the limit the proof will say what is missing."""
        limit = time.monotonic() + limit_s
        while not over() and time.monotonic() < limit:
            self.stage.installation.tend()
            if (look := self._look()) is not None:
                self.screen.look(look)
            time.sleep(_TICK_S)

    def settled(self) -> bool:
        """Whether no operation has work left."""
        look = self._look()
        return look is not None and not any(look.open.values())

    def _look(self) -> Look | None:
        try:
            with self.stage.engine.connect() as connection:
                lag = insights.lag(connection)
                saved = int(connection.execute(statements.SAVED).scalar_one())
        except (SQLAlchemyError, OutboxError):
            return None
        still_open = dict.fromkeys(State, 0)
        for depth in lag.depths:
            still_open[depth.state] += depth.entries
        return Look(
            elapsed_s=time.monotonic() - self.began,
            # The first is the story's.
            committed=len(self.agent.committed) + 1,
            rolled_back=len(self.agent.rolled_back),
            saved=saved,
            open=still_open,
            faults=self.striker.struck(),
        )
