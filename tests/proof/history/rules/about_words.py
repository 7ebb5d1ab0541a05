"""What was said, against itself: state, receipt, sentence, counts and exit code say the same."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from oncebox_models.states import DEFINITE_STATES, State
from tests.proof.history.indexed import EXIT_CODES, History
from tests.proof.history.statements import (
    EnqueueSaid,
    ExitSaid,
    Key,
    ReceiverSaid,
    Said,
    Statement,
    StateSaid,
)
from tests.proof.history.truth import Note
from tests.proof.history.violations import Finding

# As documented for people and agents, on purpose not taken from the code that is judged. In capitals.
FIRST_WORDS: Final[Mapping[State, str]] = {
    State.PENDING: "NOT SENT YET:",
    State.SENDING: "NOT CONFIRMED YET:",
    State.RETRYING: "NOT CONFIRMED YET:",
    State.UNKNOWN: "OUTCOME UNKNOWN:",
    State.NEEDS_REVIEW: "OUTCOME UNKNOWN:",
    State.SAVED: "SAVED:",
    State.REFUSED: "REFUSED:",
    State.NOT_SAVED: "NOT SAVED:",
}


def receipt_without_saved(history: History) -> Iterator[Finding]:
    """A receipt goes with saved (or completed), and with nothing else."""
    for key, said in _of_operations(history):
        match said.body:
            case StateSaid() | EnqueueSaid():
                saved = said.body.state is State.SAVED
            case ReceiverSaid():
                saved = said.body.state == "completed"
            case _:
                continue
        if saved is (said.body.receipt is None):
            has = "without a receipt" if saved else "with a receipt"
            yield Finding(key, f"{said.body.state} {has}", (said,))


def receipts_differ(history: History) -> Iterator[Finding]:
    """All receipts of a key are the same bytes, whoever gives them; the sender's ledger holds the same."""
    for key, told in history.by_key.items():
        operation = history.ledger.operations.get(key)
        first = None if operation is None else operation.receipt
        for said in told:
            receipt = _receipt(said.body)
            if receipt is None:
                continue
            first = receipt if first is None else first
            if receipt != first:
                yield Finding(key, f"another receipt than {first}", (said,))
                break


def receipt_of_another_note(history: History) -> Iterator[Finding]:
    """A receipt names the key, and the note that is there: id, version, folder, etag, hash."""
    for key, said in _of_operations(history):
        receipt = _receipt(said.body)
        notes = history.notes(key)
        # Without a note it is `saved_before_commit`.
        if receipt is not None and notes and not any(_names(receipt, key, note) for note in notes):
            yield Finding(key, f"the receipt does not name {notes}", (said,))


def first_words_disagree(history: History) -> Iterator[Finding]:
    """People read the first words and decide; they must be those of the state."""
    for key, said in _of_operations(history):
        match said.body:
            case StateSaid(sentence=str(sentence)):
                words = FIRST_WORDS[said.body.state]
                if sentence[: len(words)].upper() != words:
                    yield Finding(key, f"{said.body.state} in the words of another state", (said,))
            case _:
                pass


def attempts_disagree(history: History) -> Iterator[Finding]:
    """Pending means none; retrying and unknown mean some."""
    for key, said in _of_operations(history):
        match said.body:
            case StateSaid(attempts=int(attempts)):
                match said.body.state:
                    case State.PENDING:
                        wrong = attempts > 0
                    case State.RETRYING | State.UNKNOWN | State.SENDING:
                        wrong = attempts == 0
                    case state:
                        wrong = state in DEFINITE_STATES
                if wrong:
                    yield Finding(key, f"{said.body.state} with {attempts} attempts", (said,))
            case _:
                pass


def exit_code_disagrees(history: History) -> Iterator[Finding]:
    """A script that looks at the exit code alone learns what the text says."""
    for key, said in _of_operations(history):
        match said.body:
            case ExitSaid(state=State() as state):
                if state not in EXIT_CODES[said.body.command].get(said.body.exit_code, ()):
                    yield Finding(key, f"{state} with exit code {said.body.exit_code}", (said,))
            case _:
                pass


def _of_operations(history: History) -> Iterator[tuple[Key, Statement]]:
    for key, told in history.by_key.items():
        for said in told:
            yield key, said


def _receipt(body: Said) -> str | None:
    return body.receipt if isinstance(body, StateSaid | EnqueueSaid | ReceiverSaid) else None


def _names(receipt: str, key: Key, note: Note) -> bool:
    try:
        told = json.loads(receipt)
        named = told["note"]
        found = (
            told["operation_id"],
            told["args_hash"],
            *(named[name] for name in ("id", "version", "folder", "etag")),
        )
    except (ValueError, LookupError, TypeError):
        return False
    return found == (key.operation_id, note.args_hash, note.note_id, note.version, note.folder, note.etag)
