"""Watching what is said of an operation while it is under way, against the notes that there are."""

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from oncebox_models.states import DEFINITE_STATES, State
from oncebox_operate.demo.stage import Stage
from oncebox_operate.ledger import Key, NotesLedger
from oncebox_outbox import OperationNotFound, OperationStatus

DEFINITE: Final = DEFINITE_STATES
UNKNOWN: Final = frozenset({State.UNKNOWN})
_POLL_S: Final = 0.02
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Look:
    """One answer, with the number of notes before the question and after it. That number never falls."""

    state: State
    said: str
    before: int
    after: int

    def untrue(self) -> bool:
        """Whether the answer contradicts what was there all the time."""
        match self.state:
            case State.PENDING | State.RETRYING | State.REFUSED | State.NOT_SAVED:
                return self.before > 0
            case State.SAVED:
                return self.after != 1
            case State.SENDING | State.UNKNOWN | State.NEEDS_REVIEW:
                return False


class Witness:
    """``with Witness(stage, "note-7") as witness``: asks all the time what became of it. `untrue` is for afterwards."""

    def __init__(self, stage: Stage, operation_id: str) -> None:
        self._stage = stage
        self._key = Key(stage.places.tenant, stage.places.principal, operation_id)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        self._looks: list[Look] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def said(self) -> list[str]:
        """The decisive words of what was said, in the order in which they were first said."""
        return list(dict.fromkeys(look.said.partition(":")[0] for look in self._looks))

    def untrue(self) -> list[str]:
        """What was said and was not so, in words."""
        said = [look for look in self._looks if look.untrue()]
        wrong = [f"{look.state} was said with {look.before} to {look.after} notes." for look in said]
        definite = [look.state for look in self._looks if look.state in DEFINITE_STATES]
        if len(set(definite)) > 1:
            wrong.append(f"Definite answers contradict each other: {', '.join(dict.fromkeys(definite))}.")
        return wrong if self._looks else ["Nothing was seen."]

    def _run(self) -> None:
        with NotesLedger.connected(self._stage.places.notes_database_url) as ledger:
            while not self._over.wait(_POLL_S):
                self._look(ledger)
            # The end is part of what was said.
            self._look(ledger)

    def _look(self, ledger: NotesLedger) -> None:
        before = ledger.counted([self._key], [False]).notes
        known = status(self._stage, self._key.operation_id)
        if known is not None:
            after = ledger.counted([self._key], [False]).notes
            self._looks.append(Look(known.state, known.say, before, after))


def status(stage: Stage, operation_id: str) -> OperationStatus | None:
    """What is known of an operation; None while it is not enqueued, or nobody answers."""
    try:
        with Session(stage.engine) as session:
            return stage.outbox.status(session, operation_id)
    except (OperationNotFound, SQLAlchemyError):
        return None


def status_when(stage: Stage, operation_id: str, states: Collection[State]) -> OperationStatus:
    """The first status in one of the states. Raises TimeoutError."""
    last: OperationStatus | None = None

    def reached() -> bool:
        nonlocal last
        last = status(stage, operation_id)
        return last is not None and last.state in states

    until(reached, f"{operation_id} is {' or '.join(sorted(states))}")
    if last is None:
        raise RuntimeError("a status that was reached is known")
    return last


def until(check: Callable[[], bool], what: str) -> None:
    """Wait until it holds. Raises TimeoutError that says what did not come."""
    limit = time.monotonic() + _PATIENCE_S
    while not check():
        if time.monotonic() > limit:
            raise TimeoutError(f"not within {_PATIENCE_S:g} s: {what}")
        time.sleep(_POLL_S)
