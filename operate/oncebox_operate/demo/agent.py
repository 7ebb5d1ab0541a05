"""The agent of the demonstration: keeps a finding and wants a note of it, both in one transaction, at a steady rate."""

import threading
import time
from collections.abc import Sequence
from typing import Final

from sqlalchemy.orm import Session

from oncebox_operate.demo import statements
from oncebox_operate.demo.corpus import ResearchNote
from oncebox_operate.demo.script import Script
from oncebox_operate.demo.stage import Stage
from oncebox_operate.up.plan import FOLDER
from oncebox_outbox import Intent

_CLAIM: Final = 200
"""Characters of a note's text that the agent keeps as its finding."""


class ChangedMind(Exception):
    """The agent rolls its transaction back."""


class Agent:
    """Runs in a thread of its own. It opens no connection but the database's: whatever else is down, it goes on."""

    def __init__(self, stage: Stage, script: Script, notes: Sequence[ResearchNote]) -> None:
        self._stage = stage
        self._script = script
        self._notes = notes
        self._roll_backs = script.roll_backs()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agent", daemon=True)
        self.committed: list[str] = []
        self.rolled_back: list[str] = []
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Begin with the second operation: the first is the story's."""
        self._thread.start()

    def stop(self) -> None:
        """Enqueue no more."""
        self._over.set()
        self._thread.join(15)

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def keep(self, operation_id: str, note: ResearchNote, *, change_mind: bool = False) -> None:
        """One transaction: the finding, the intent and the wish for a note. Raises ChangedMind, nothing being kept then."""
        why = Intent(
            run=f"demo-{self._script.seed}",
            step=f"keep {operation_id}",
            purpose=f"have {note.title!r} where the others can read it",
        )
        with (
            Session(self._stage.engine.execution_options(isolation_level="READ COMMITTED")) as session,
            session.begin(),
        ):
            claim = {"operation_id": operation_id, "claim": note.text[:_CLAIM]}
            session.execute(statements.KEEP_FINDING, claim)
            self._stage.outbox.save_note(
                session,
                why,
                operation_id=operation_id,
                folder=FOLDER,
                title=note.title,
                text=note.text,
                format=note.format,
            )
            if change_mind:
                raise ChangedMind

    def _run(self) -> None:
        began = time.monotonic()
        try:
            for number in range(1, self._script.ops):
                if self._over.wait(max(began + number / self._script.rate - time.monotonic(), 0.0)):
                    return
                self._next(number)
        except Exception as error:  # a thread's failure must reach whoever started it
            self.failure = error

    def _next(self, number: int) -> None:
        note = self._notes[number % len(self._notes)]
        if number in self._roll_backs:
            given_up = f"draft-{number:03d}"
            try:
                self.keep(given_up, note, change_mind=True)
            except ChangedMind:
                self.rolled_back.append(given_up)
        kept = f"finding-{number:03d}"
        self.keep(kept, note)
        self.committed.append(kept)
