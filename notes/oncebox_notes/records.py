"""Key locks and the records behind them: what create, revise, seal and status all look at first."""

from collections.abc import Sequence
from typing import Any

from oncebox_notes import statements
from oncebox_notes.database import Connection
from oncebox_notes.operations import Key, NoteRef, Record, etag, key_columns


async def wait_for_locks(connection: Connection, keys: Sequence[Key]) -> None:
    """Holds the keys until the end of the transaction; raises `LockNotAvailable` after the lock timeout."""
    await connection.execute(statements.KEY_LOCK_WAIT, key_columns(keys))


async def try_locks(connection: Connection, keys: Sequence[Key]) -> set[Key]:
    """Holds those keys that are free, without waiting; the answer is the ones that are held."""
    cursor = await connection.execute(statements.KEY_LOCK_TRY, key_columns(keys))
    return {keys[position - 1] for position, locked in await cursor.fetchall() if locked}


async def read(connection: Connection, keys: Sequence[Key]) -> dict[Key, Record]:
    """The records that exist. A statement of its own: one that had waited for a lock would see an older state."""
    cursor = await connection.execute(statements.RECORDS_READ, key_columns(keys))
    return {keys[row[0] - 1]: _record(row) for row in await cursor.fetchall()}


def _record(row: tuple[Any, ...]) -> Record:
    _, state, args_hash, note_id, version, folder, created_at = row
    if state == "sealed":
        return Record("sealed", args_hash, None)
    return Record(
        "completed", args_hash, NoteRef(note_id, folder, version, etag(version, args_hash), created_at)
    )
