"""What can be asked: the state of keys, notes and their versions, folders, the receiver's identity."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from oncebox_notes import database, grants, records, statements
from oncebox_notes.database import Connection, Pool
from oncebox_notes.identity import Identity
from oncebox_notes.operations import Key, KeyState, NoteRef, key_columns


@dataclass(frozen=True, slots=True)
class Note:
    """One version of a note, with its text."""

    ref: NoteRef
    title: str
    text: str
    format: str
    args_hash: str
    principal: str
    operation_id: str


async def key_states(pool: Pool, keys: Sequence[Key]) -> list[KeyState]:
    """The state of each key, in the order asked.

    The lock is looked at before the record is read in a later statement: an operation that commits in between
    is seen as completed, never as not found.
    """

    async def work(connection: Connection) -> list[KeyState]:
        cursor = await connection.execute(statements.KEYS_HELD, key_columns(keys))
        held: set[Key] = {keys[row[0] - 1] for row in await cursor.fetchall()}
        existing = await records.read(connection, keys)
        clock = await connection.execute(statements.CLOCK)
        as_of: datetime = (await clock.fetchall())[0][0]
        states: list[KeyState] = []
        for key in keys:
            record = existing.get(key)
            if record is not None:
                states.append(KeyState(key, record.state, as_of, record))
            else:
                states.append(KeyState(key, "in_progress" if key in held else "not_found", as_of, None))
        return states

    return await database.transaction(pool, work)


async def note(pool: Pool, reader: Identity, note_id: UUID, version: int | None) -> Note | None:
    """The note as a principal with a current grant on its folder sees it; the latest version without one."""
    parameters = {
        "id": note_id,
        "version": version,
        "tenant": reader.tenant,
        "principal": reader.principal,
    }
    rows = await database.fetch(pool, statements.NOTE_READ, parameters)
    if not rows:
        return None
    title, text, format_, args_hash, principal, operation_id = rows[0][5:]
    return Note(_ref(rows[0][:5]), title, text, format_, args_hash, principal, operation_id)


async def notes_of(pool: Pool, key: Key) -> list[NoteRef]:
    """The notes that one operation made: none or one. Identity only, so the key's owner always gets it."""
    parameters = {"tenant": key.owner.tenant, "principal": key.owner.principal, "key": key.value}
    return [_ref(row) for row in await database.fetch(pool, statements.NOTES_OF_OPERATION, parameters)]


async def writable_folders(pool: Pool, identity: Identity) -> list[tuple[str, datetime]]:
    """The folders with a grant in force and the time of the grant, by path."""

    async def work(connection: Connection) -> list[tuple[str, datetime]]:
        return (await grants.permitted_folders(connection, [identity]))[identity]

    return await database.transaction(pool, work)


def _ref(row: tuple[Any, ...]) -> NoteRef:
    note_id, folder, version, tag, created_at = row
    return NoteRef(note_id, folder, version, tag, created_at)
