"""The story of note-7, played on the stage: three lines on what the rest is about."""

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Final

from oncebox_operate.demo.agent import Agent
from oncebox_operate.demo.corpus import ResearchNote
from oncebox_operate.demo.script import STORY_ID
from oncebox_operate.demo.stage import Stage
from oncebox_operate.demo.strikes import SENDS
from oncebox_operate.demo.witness import DEFINITE, UNKNOWN, status_when

NOTE: Final = ResearchNote(
    "Finding 7", "Reef B recovers faster than reef A: more fish graze on its algae.", "markdown"
)
_PATIENCE_S: Final = 20.0


def tell(stage: Stage, agent: Agent) -> Iterator[str]:
    """The three lines, each when it has happened. Raises TimeoutError when it does not."""
    reply = stage.proxy.hold_replies(1, match=SENDS)
    stage.proxy.swallow_replies(match=SENDS, then="reset")
    agent.keep(STORY_ID, NOTE)
    reply.wait_until_full(_PATIENCE_S)
    with _nothing_is_asked(stage):
        reply.release()
        unknown = status_when(stage, STORY_ID, UNKNOWN)
        yield f"1. The note service saved {STORY_ID}, and its answer got lost on the way."
        yield f"2. {unknown.say}"
    saved = status_when(stage, STORY_ID, DEFINITE)
    yield f"3. {saved.say} Notes there under this key: {stage.notes_of(STORY_ID)}."


@contextmanager
def _nothing_is_asked(stage: Stage) -> Generator[None]:
    """The relay stands still, so that a person sees the moment between the loss and the question."""
    relay = stage.installation.relay
    if relay is None:
        raise RuntimeError("a stage has a relay while it is open")
    os.kill(relay.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(relay.pid, signal.SIGCONT)
