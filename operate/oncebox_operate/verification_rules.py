"""What the sender says of an operation against what its receiver holds: pure rules, no I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from oncebox_destinations.protocol import StoredNote
from oncebox_models.outcomes import Receipt
from oncebox_models.states import State
from oncebox_operate.ledger import Key, Written


class Found(StrEnum):
    """What can be wrong."""

    LOST = "lost"
    """Said to be saved, and there is no note."""
    DUPLICATE = "duplicate"
    """A second note for the same write."""
    CONTRADICTION = "contradiction"
    """Said never to be saved, and there is a note."""
    MISMATCH = "mismatch"
    """There is a note, and it is not what the receipt or the arguments say."""
    NOT_PERMITTED = "not_permitted"
    """There is a note, and no grant allowed it when it was written."""
    UNREADABLE = "unreadable"
    """The tables hold the note, and the receiver does not hand it out to its owner."""
    ORPHAN = "orphan"
    """Open, and nothing would ever move it on."""
    VIOLATION = "violation"
    """A worker recorded a contradiction."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with one operation. id None: not one operation's."""

    found: Found
    operation_id: str
    id: UUID | None
    detail: str


@dataclass(frozen=True, slots=True)
class Entry:
    """An operation as the sender's ledger says it is. content: digest of what was to be written; None once pruned."""

    id: UUID
    key: Key
    args_hash: str
    state: State
    receipt: Receipt | None
    content: bytes | None


def compare(entry: Entry, written: Sequence[Written]) -> list[Problem]:
    """Everything that is wrong between an operation and the rows under its key."""
    # Rows of other arguments under our key are not ours: the receiver refused ours for them.
    ours = [row for row in written if row.args_hash == entry.args_hash]
    problems = [
        _problem(entry, Found.DUPLICATE, f"note {row.note_id} version {row.version} is a second one")
        for row in written[1:]
    ]
    match entry.state:
        case State.SAVED if not written:
            problems.append(_problem(entry, Found.LOST, "it is said to be saved, and there is no note"))
        case State.SAVED:
            problems += _against_receipt(entry, written[0])
        case State.REFUSED | State.NOT_SAVED if ours:
            detail = f"it is said to be {entry.state}, and there is note {ours[0].note_id}"
            problems.append(_problem(entry, Found.CONTRADICTION, detail))
        case _:
            pass
    for row in ours:
        problems += _row(entry, row)
    return problems


def compare_read(entry: Entry, stored: StoredNote | None, written: Written | None) -> list[Problem]:
    """Everything that is wrong between a saved operation and the note as its receiver hands it out.

    A note whose owner has no grant any more is not handed out, which is right.
    """
    if entry.receipt is None:
        return []
    if stored is None:
        if written is None or not written.readable:
            return []
        detail = f"note {entry.receipt.note.get('id')} is not handed out to {entry.key.tenant}/{entry.key.principal}"
        return [_problem(entry, Found.UNREADABLE, detail)]
    told: Mapping[str, object] = {
        **{name: entry.receipt.note.get(name) for name in ("id", "folder", "version", "etag", "location")},
        "principal": entry.key.principal,
        "operation_id": entry.key.operation_id,
        "args_hash": entry.args_hash,
    }
    return _differences(entry, "read over HTTP", told, {name: getattr(stored, name) for name in told})


def _against_receipt(entry: Entry, row: Written) -> list[Problem]:
    if entry.receipt is None:
        return [_problem(entry, Found.MISMATCH, "it is saved, and no receipt is held")]
    told = {name: entry.receipt.note.get(name) for name in ("id", "version", "folder", "etag")}
    held = {"id": row.note_id, "version": row.version, "folder": row.folder, "etag": row.etag}
    return _differences(
        entry, "stored", {**told, "args_hash": entry.args_hash}, {**held, "args_hash": row.args_hash}
    )


def _row(entry: Entry, row: Written) -> list[Problem]:
    problems: list[Problem] = []
    if entry.content is not None and entry.content != row.content:
        problems.append(
            _problem(entry, Found.MISMATCH, f"the text, title or format of note {row.note_id} is another")
        )
    if row.lies_in != row.folder:
        detail = f"note {row.note_id} was written into {row.folder!r} and lies in {row.lies_in!r}"
        problems.append(_problem(entry, Found.MISMATCH, detail))
    if not row.recorded:
        detail = f"the receiver has no record of note {row.note_id}: it would execute the key again"
        problems.append(_problem(entry, Found.MISMATCH, detail))
    if not row.granted:
        detail = f"no grant of {row.key.tenant}/{row.key.principal} for {row.folder!r} was in force when it was written"
        problems.append(_problem(entry, Found.NOT_PERMITTED, detail))
    return problems


def _differences(
    entry: Entry, where: str, told: Mapping[str, object], held: Mapping[str, object]
) -> list[Problem]:
    return [
        _problem(
            entry, Found.MISMATCH, f"{name} is {held[name]!r} as {where}, and {told[name]!r} by the receipt"
        )
        for name in told
        if told[name] != held[name]
    ]


def _problem(entry: Entry, found: Found, detail: str) -> Problem:
    return Problem(found, entry.key.operation_id, entry.id, detail)
