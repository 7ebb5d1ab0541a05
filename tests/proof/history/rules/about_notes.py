"""What was said, against the notes and tombstones that there were at that moment.

A commit time is taken by the server before the commit can be seen. So "it is there" is false when answered before
it, and "it is not there" is false when asked after it: a status is read from the primary, and a note service that
commits says "in progress".
"""

from collections.abc import Iterator
from typing import Literal

from oncebox_models.states import State
from tests.proof.history.indexed import SAVED, UNSAVED, History, definite_states
from tests.proof.history.statements import Key, ReceiverSaid, Statement, StateSaid
from tests.proof.history.violations import Finding


def saved_before_commit(history: History) -> Iterator[Finding]:
    """Saved (or completed) is said only of a note whose commit lies behind."""
    for key, said in _definitely(history, "saved"):
        committed_at = history.committed_at(key)
        if committed_at > said.answered_at:
            late = f"{committed_at - said.answered_at:.6f} s later" if history.notes(key) else "never"
            yield Finding(key, f"said to be saved; its note was committed {late}", (said,))


def never_but_note(history: History) -> Iterator[Finding]:
    """Not saved, refused and sealed are promises without an end: no note, before or after."""
    for key, said in _definitely(history, "unsaved"):
        if history.notes(key):
            yield Finding(
                key,
                f"said never to be saved; a note was committed at {history.committed_at(key):.6f}",
                (said,),
            )


def pending_after_commit(history: History) -> Iterator[Finding]:
    """Pending says that nothing was sent."""
    yield from _denied(history, State.PENDING)


def retrying_after_commit(history: History) -> Iterator[Finding]:
    """Retrying says that every call so far was not executed."""
    yield from _denied(history, State.RETRYING)


def not_found_after_commit(history: History) -> Iterator[Finding]:
    """The receiver knows the key of every note that it has committed."""
    for key, told in history.by_key.items():
        committed_at = history.committed_at(key)
        for said in told:
            match said.body:
                case ReceiverSaid(state="not_found") if committed_at < said.asked_at:
                    yield Finding(key, _behind(committed_at, said), (said,))
                case _:
                    pass


def unsaved_without_seal(history: History) -> Iterator[Finding]:
    """Once something was sent, only a tombstone proves that nothing will come of it; and sealed means one."""
    for key, said in _definitely(history, "unsaved"):
        operation = history.ledger.operations.get(key)
        was_sent = operation is not None and operation.by_call
        sealed_at = history.ledger.sealed.get(key)
        proven = sealed_at is not None and sealed_at <= said.answered_at
        # A note under the key: `never_but_note` says so.
        if (was_sent or isinstance(said.body, ReceiverSaid)) and not proven and not history.notes(key):
            when = "never" if sealed_at is None else f"{sealed_at - said.answered_at:.6f} s later"
            yield Finding(key, f"said never to be saved; its key was sealed {when}", (said,))


def _definitely(history: History, what: Literal["saved", "unsaved"]) -> Iterator[tuple[Key, Statement]]:
    wanted = SAVED if what == "saved" else UNSAVED
    for key, told in history.by_key.items():
        for said in told:
            states = definite_states(said.body)
            if states is not None and states <= wanted:
                yield key, said


def _denied(history: History, state: State) -> Iterator[Finding]:
    for key, told in history.by_key.items():
        committed_at = history.committed_at(key)
        for said in told:
            match said.body:
                case StateSaid() if said.body.state is state and committed_at < said.asked_at:
                    yield Finding(key, _behind(committed_at, said), (said,))
                case _:
                    pass


def _behind(committed_at: float, said: Statement) -> str:
    return f"said that there is nothing, {said.asked_at - committed_at:.6f} s after the note was committed"
