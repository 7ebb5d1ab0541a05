"""The two ledgers at the end, against each other and against what was said."""

from collections.abc import Iterator
from functools import reduce
from typing import Final

from oncebox_models.states import State
from tests.proof.history.indexed import History, States, definite_states
from tests.proof.history.statements import EnqueueSaid, NoAnswer, ReceiverSaid, RollbackSaid, Statement
from tests.proof.history.violations import Finding

# A note may be there and the sender not know it yet; the rest of the states deny it.
_MAY_HAVE_A_NOTE: Final = frozenset({State.SAVED, State.SENDING, State.UNKNOWN, State.NEEDS_REVIEW})


def enqueue_lost(history: History) -> Iterator[Finding]:
    """What was confirmed as committed is in the sender's ledger."""
    for key, told in history.by_key.items():
        confirmed = [said for said in told if isinstance(said.body, EnqueueSaid)]
        if confirmed and key not in history.ledger.operations:
            yield Finding(
                key, "its enqueue was confirmed, and the sender's ledger does not have it", tuple(confirmed)
            )


def rollback_left_something(history: History) -> Iterator[Finding]:
    """Nothing is left of what was rolled back, unless it was enqueued another time, too."""
    ledger = history.ledger
    for key, told in history.by_key.items():
        rolled_back = [said for said in told if isinstance(said.body, RollbackSaid)]
        # A commit that nobody confirmed may have happened.
        enqueued = any(isinstance(said.body, EnqueueSaid | NoAnswer) for said in told)
        if (
            rolled_back
            and not enqueued
            and (key in ledger.operations or key in ledger.notes or key in ledger.sealed)
        ):
            yield Finding(key, "it was rolled back, and something of it is there", tuple(rolled_back))


def note_lost(history: History) -> Iterator[Finding]:
    """What the sender holds as saved is there."""
    for key, operation in history.ledger.operations.items():
        if operation.state is State.SAVED and not history.notes(key):
            yield Finding(key, "saved in the sender's ledger, and there is no note")


def note_unaccounted_for(history: History) -> Iterator[Finding]:
    """The sender's ledger owns up to every note."""
    for key in history.ledger.notes:
        operation = history.ledger.operations.get(key)
        state = "not there" if operation is None else operation.state
        if state not in _MAY_HAVE_A_NOTE:
            yield Finding(key, f"there is a note; in the sender's ledger the operation is {state}")


def note_twice(history: History) -> Iterator[Finding]:
    """One note a key."""
    for key, notes in history.ledger.notes.items():
        if len(notes) > 1:
            yield Finding(key, f"{len(notes)} notes: {notes}")


def note_behind_a_seal(history: History) -> Iterator[Finding]:
    """A sealed key has no note."""
    for key in history.ledger.sealed:
        if history.notes(key):
            yield Finding(key, "sealed, and there is a note")


def note_of_other_arguments(history: History) -> Iterator[Finding]:
    """The note was made of the arguments that were committed."""
    for key, operation in history.ledger.operations.items():
        for note in history.notes(key):
            if note.args_hash != operation.args_hash:
                yield Finding(
                    key, f"the note's hash is {note.args_hash}, the operation's {operation.args_hash}"
                )


def end_is_another(history: History) -> Iterator[Finding]:
    """What was definite is still so in the sender's ledger at the end."""
    for key, told in history.by_key.items():
        operation = history.ledger.operations.get(key)
        ends = [(said, states) for said in told if (states := _end_by_the_outbox(said))]
        if operation is None or not ends:
            continue
        left = reduce(frozenset[State].intersection, (states for _, states in ends))
        # Where the notes tell that it was untrue from the start, or the statements contradict each other, other
        # rules say so.
        as_the_notes = bool(history.notes(key)) is (State.SAVED in left)
        if left and operation.state not in left and as_the_notes:
            listed = " or ".join(sorted(left))
            yield Finding(key, f"said to be {listed}; it ended as {operation.state}", (ends[0][0],))


def _end_by_the_outbox(said: Statement) -> States | None:
    # The receiver may know more than the sender has heard.
    return None if isinstance(said.body, ReceiverSaid) else definite_states(said.body)
