"""Records every status answer about an operation while a test runs, and judges each against the ledger of notes.

The number of notes under the key is counted before and after each question. It never falls, so what was true at
some moment in between is known.
"""

import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

from sqlalchemy.orm import Session

from oncebox_models.states import State
from tests.acceptance.ledger import NotesLedger
from tests.acceptance.receiver import Receiver
from tests.acceptance.town import OUTBOX, Town

PAUSE_S = 0.01
# The decisive words of the sentence for each state that is not an end.
FIRST_WORDS = {
    State.PENDING: "NOT SENT YET:",
    State.SENDING: "NOT CONFIRMED YET:",
    State.RETRYING: "NOT CONFIRMED YET:",
    State.UNKNOWN: "OUTCOME UNKNOWN:",
    State.NEEDS_REVIEW: "OUTCOME UNKNOWN:",
}


@dataclass(frozen=True, slots=True)
class Look:
    """One answer, with the number of notes before the question and after it."""

    who: Literal["sender", "receiver"]
    state: str
    said: str
    before: int
    after: int

    def untrue(self, notes_at_the_end: int) -> str | None:
        """Why this answer was wrong; None when it was not."""
        match self.state:
            case "pending" | "retrying" | "not_found":
                wrong = self.before > 0
            case "saved" | "completed":
                wrong = self.after != 1
            case "refused" | "not_saved" | "sealed":
                wrong = notes_at_the_end > 0
            case _:
                # sending, unknown, needs_review, in_progress claim neither.
                wrong = False
        if self.who == "sender" and self.state in FIRST_WORDS:
            wrong = wrong or not self.said.startswith(FIRST_WORDS[State(self.state)])
        if not wrong:
            return None
        return f"{self.who} said {self.state} ({self.said}) with {self.before} to {self.after} notes"


class Witness:
    """``with Witness(town, "note-7") as witness: ...``: fails at the end if anything that was said is untrue."""

    def __init__(self, town: Town, operation_id: str) -> None:
        self.looks: list[Look] = []
        self._town = town
        self._operation_id = operation_id
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(30)
        if error is None:
            if self._failure:
                raise self._failure
            self._judge()

    def states(self) -> list[str]:
        """What the sender said, without repetitions, in order."""
        said = [look.state for look in self.looks if look.who == "sender"]
        return [state for place, state in enumerate(said) if place == 0 or said[place - 1] != state]

    def _judge(self) -> None:
        notes = len(self._town.notes.notes_of(self._operation_id))
        untrue = [wrong for look in self.looks if (wrong := look.untrue(notes))]
        assert not untrue, untrue
        assert self.looks, "the witness saw nothing"
        states = self.states()
        ends = [place for place, state in enumerate(states) if state in ("saved", "refused", "not_saved")]
        assert ends in ([], [len(states) - 1]), f"a definite answer was followed by another: {states}"

    def _run(self) -> None:
        notes = NotesLedger(self._town.places.notes_database)
        receiver = Receiver(self._town.notes_url, self._town.token, f"{OUTBOX.tenant}/{OUTBOX.principal}")
        try:
            while not self._over.wait(PAUSE_S):
                self._look(notes, receiver)
            self._look(notes, receiver)
        except BaseException as error:  # a thread's failure must reach the test
            self._failure = error
        finally:
            receiver.close()
            notes.close()

    def _look(self, notes: NotesLedger, receiver: Receiver) -> None:
        key = self._operation_id
        before = len(notes.notes_of(key))
        with Session(self._town.engine) as session:
            status = OUTBOX.status(session, key)
        between = len(notes.notes_of(key))
        self.looks.append(Look("sender", str(status.state), status.say, before, between))
        told = receiver.state(key)
        if told is not None:
            after = len(notes.notes_of(key))
            self.looks.append(Look("receiver", str(told["state"]), "", between, after))
