"""A small honest run, by hand: operations that end in different ways, and what everybody was told of them.

=========  ====================================================================================
saved      sent at once; note at 12
doubtful   its reply was lost; note at 14, known by asking at 20
refused    sent, refused, sealed at 13
cancelled  given up before anything was sent, at 13
turned     turned away again and again; open at the end
dropped    enqueued and rolled back
unclear    rolled back once; then its commit got no answer, and had happened
=========  ====================================================================================
"""

import json
import math
from typing import Final

from oncebox_models.states import State
from tests.proof.history.statements import (
    AbsentSaid,
    CancelSaid,
    EnqueueSaid,
    ExitSaid,
    Key,
    LagSaid,
    NoAnswer,
    ReceiverSaid,
    RollbackSaid,
    Said,
    Statement,
    StateSaid,
)
from tests.proof.history.truth import Ledger, Note, Operation

SAVED, DOUBTFUL, REFUSED, CANCELLED, TURNED, DROPPED, UNCLEAR = (
    Key("demo", "researcher", name)
    for name in ("saved", "doubtful", "refused", "cancelled", "turned", "dropped", "unclear")
)
WORDS: Final = {
    State.PENDING: "NOT SENT YET: it is committed and waits to be delivered.",
    State.SENDING: "NOT CONFIRMED YET: it is being sent; no answer yet.",
    State.RETRYING: "NOT CONFIRMED YET: it was turned away and will be sent again.",
    State.UNKNOWN: "OUTCOME UNKNOWN: it may or may not be saved.",
    State.SAVED: "Saved: it is note 1.",
    State.REFUSED: "REFUSED: it will never be saved under this id.",
    State.NOT_SAVED: "NOT SAVED: it will never be saved.",
    State.NEEDS_REVIEW: "OUTCOME UNKNOWN: it needs review.",
}
_SETTLED: Final = (State.SAVED, State.REFUSED, State.NOT_SAVED)


def note(key: Key, committed_at: float) -> Note:
    """The note of a key."""
    return Note(
        f"note-of-{key.operation_id}", 1, "drafts", f"etag-{key.operation_id}", _hash(key), committed_at
    )


def receipt(key: Key, **of_note: object) -> str:
    """The receipt of a key; `of_note` changes what it says of the note."""
    made = note(key, 0.0)
    told = {
        "id": made.note_id,
        "folder": made.folder,
        "version": made.version,
        "etag": made.etag,
        "location": f"/v1/notes/{made.note_id}",
        "created_at": "2031-01-02T03:04:05.000006Z",
    }
    document = {"operation_id": key.operation_id, "args_hash": made.args_hash, "note": {**told, **of_note}}
    return json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def operation(
    key: Key, state: State, created_at: float, open_until: float, *, by_call: bool = True
) -> Operation:
    """A row of the sender's ledger."""
    held = receipt(key) if state is State.SAVED else None
    return Operation(state, _hash(key), held, created_at, open_until, by_call and state in _SETTLED)


def state(key: Key, known: State, attempts: int | None = None) -> StateSaid:
    """The outbox's answer on an operation, with all that belongs to it."""
    if attempts is None and known not in _SETTLED:
        attempts = 0 if known is State.PENDING else 1
    return StateSaid(key, known, WORDS[known], receipt(key) if known is State.SAVED else None, attempts)


def at(asked_at: float, body: Said, *, took: float = 0.1) -> Statement:
    """A statement; `took` is how long it was until the answer."""
    return Statement("somebody", asked_at, asked_at + took, body)


def honest() -> tuple[list[Statement], Ledger]:
    """What was said, and what was so."""
    ledger = Ledger(
        notes={SAVED: (note(SAVED, 12.0),), DOUBTFUL: (note(DOUBTFUL, 14.0),)},
        sealed={REFUSED: 13.0},
        operations={
            SAVED: operation(SAVED, State.SAVED, 10.0, 12.1),
            DOUBTFUL: operation(DOUBTFUL, State.SAVED, 10.0, 20.0),
            REFUSED: operation(REFUSED, State.REFUSED, 10.0, 13.5),
            CANCELLED: operation(CANCELLED, State.NOT_SAVED, 10.0, 13.0, by_call=False),
            TURNED: operation(TURNED, State.UNKNOWN, 10.0, math.inf),
            UNCLEAR: operation(UNCLEAR, State.PENDING, 22.5, math.inf),
        },
    )
    told = [*_beginning(), *_of_saved(), *_of_the_others()]
    return told, ledger


def _beginning() -> list[Statement]:
    enqueued = (SAVED, DOUBTFUL, REFUSED, CANCELLED, TURNED)
    return [
        at(9.0, AbsentSaid(SAVED)),
        at(9.5, RollbackSaid(DROPPED)),
        at(9.5, RollbackSaid(SAVED)),
        *(at(9.9, EnqueueSaid(key, True, State.PENDING), took=0.3) for key in enqueued),
        *(at(10.3, state(key, State.PENDING)) for key in enqueued),
        at(10.4, EnqueueSaid(SAVED, False, State.PENDING)),
        at(10.5, LagSaid(5, 0.55, {State.PENDING: 5})),
    ]


def _of_saved() -> list[Statement]:
    """Claimed at 11.4. Many of these were asked before something happened, and answered after it."""
    return [
        at(10.6, ReceiverSaid(SAVED, "not_found")),
        at(11.3, state(SAVED, State.PENDING), took=0.9),
        at(11.4, state(SAVED, State.SENDING), took=1.5),
        at(11.9, ReceiverSaid(SAVED, "not_found"), took=0.3),
        at(11.9, ReceiverSaid(SAVED, "in_progress")),
        at(11.95, state(SAVED, State.SENDING), took=0.1),
        at(11.9, ReceiverSaid(SAVED, "completed", receipt(SAVED)), took=0.11),
        at(11.9, state(SAVED, State.SAVED), took=0.3),
        at(12.2, ReceiverSaid(SAVED, "completed", receipt(SAVED))),
        at(12.6, state(SAVED, State.SAVED)),
        at(12.6, ExitSaid(SAVED, "wait", 0, State.SAVED)),
        at(12.7, EnqueueSaid(SAVED, False, State.SAVED, receipt(SAVED))),
        at(12.8, LagSaid(4, 2.85, {State.UNKNOWN: 1, State.SENDING: 1, State.PENDING: 2})),
        at(12.9, CancelSaid(SAVED, "nothing")),
    ]


def _of_the_others() -> list[Statement]:
    return [
        at(12.9, ReceiverSaid(REFUSED, "sealed"), took=0.2),
        at(12.95, state(REFUSED, State.REFUSED), took=0.6),
        at(13.0, CancelSaid(CANCELLED, "settled")),
        at(13.2, state(CANCELLED, State.NOT_SAVED)),
        at(13.2, ExitSaid(CANCELLED, "status", 6, State.NOT_SAVED)),
        at(13.2, ReceiverSaid(CANCELLED, "not_found")),
        at(13.3, ReceiverSaid(REFUSED, "sealed")),
        at(13.6, state(REFUSED, State.REFUSED)),
        at(13.6, NoAnswer("status", "OperationalError: the connection is lost", TURNED)),
        # Turned away once before the call that makes the note.
        at(13.7, state(DOUBTFUL, State.RETRYING), took=0.4),
        # The note is there, and nobody has heard of it yet.
        at(14.1, state(DOUBTFUL, State.SENDING)),
        at(14.5, state(DOUBTFUL, State.UNKNOWN)),
        at(14.5, ExitSaid(DOUBTFUL, "status", 5, State.UNKNOWN)),
        at(15.0, state(TURNED, State.RETRYING)),
        at(15.0, LagSaid(2, 5.05, {State.UNKNOWN: 1, State.RETRYING: 1})),
        at(15.5, ExitSaid(TURNED, "wait", 7, State.RETRYING)),
        at(17.0, CancelSaid(DOUBTFUL, "sealing")),
        at(20.2, state(DOUBTFUL, State.SAVED)),
        at(20.3, ReceiverSaid(DOUBTFUL, "completed", receipt(DOUBTFUL))),
        at(20.5, LagSaid(1, 10.55)),
        at(21.0, state(TURNED, State.SENDING, 3)),
        at(22.0, RollbackSaid(UNCLEAR)),
        at(22.4, NoAnswer("enqueue", "OperationalError: the connection is lost", UNCLEAR)),
    ]


def _hash(key: Key) -> str:
    return f"{sum(key.operation_id.encode()):064x}"
