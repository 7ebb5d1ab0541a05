"""What is true after a run: the receiver's notes and tombstones with their commit times, the sender's operations.

Read by `ledger.py`. Times are unix seconds of the same clock as the statements'.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from oncebox_models.states import State
from tests.proof.history.statements import Key


@dataclass(frozen=True, slots=True)
class Note:
    """One version of a note. committed_at: taken by the server just before the commit could be seen by anyone."""

    note_id: str
    version: int
    folder: str
    etag: str
    args_hash: str
    committed_at: float


@dataclass(frozen=True, slots=True)
class Operation:
    """A row of the sender's ledger.

    state: at the end. created_at: start of the transaction that enqueued it. open_until: before it, it had work left
    for certain; infinity while it has. by_call: settled by an answer of the receiver, and not by ourselves.
    """

    state: State
    args_hash: str
    receipt: str | None
    created_at: float
    open_until: float
    by_call: bool


@dataclass(frozen=True, slots=True)
class Ledger:
    """Both databases after the run. sealed: commit time of a key's tombstone."""

    notes: Mapping[Key, tuple[Note, ...]]
    sealed: Mapping[Key, float]
    operations: Mapping[Key, Operation]
