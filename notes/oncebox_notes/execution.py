"""The transaction that makes notes: locks, one record a key, current permission, and everything in one write.

Order, for one operation and for a set alike: key locks, records (an existing one answers, whatever the grants
are now), grant locks and grants, note rows of revisions, then the write. Competitors for one key therefore
never both write, and a crash leaves neither a lock nor half a note.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg

from oncebox_notes import grants, note_ids, problems, records, statements
from oncebox_notes.arguments import Create, Revise
from oncebox_notes.database import Connection
from oncebox_notes.grants import Grant, Place
from oncebox_notes.operations import Completed, Key, NoteRef, Operation, Outcome, Record, etag
from oncebox_notes.problems import Problem


@dataclass(frozen=True, slots=True)
class Write:
    """One row of the writing statement: an operation with everything minted for it."""

    operation: Operation
    note_id: UUID
    version: int
    folder: str
    grant: Grant


@dataclass(slots=True)
class Execution:
    """One transaction over operations with distinct keys; `run` gives an outcome for each key.

    `wait`: whether to wait for a busy key (one operation) or to answer at once that it is busy (a set).
    `last_write`: how long after BEGIN the writing statement may still begin.
    """

    connection: Connection
    token_id: str
    last_write: timedelta
    wait: bool
    outcomes: dict[Key, Outcome] = field(default_factory=dict[Key, Outcome])

    async def run(self, operations: Sequence[Operation]) -> Mapping[Key, Outcome]:
        fresh = await self._claim(operations)
        writes = await self._permit(fresh) if fresh else []
        if writes:
            await self._write(writes)
        return self.outcomes

    async def _claim(self, operations: Sequence[Operation]) -> list[Operation]:
        """Those operations whose key is ours and unused; the others get their outcome."""
        keys = [operation.key for operation in operations]
        held = await self._lock(keys)
        existing = await records.read(self.connection, keys)
        fresh: list[Operation] = []
        for operation in operations:
            record = existing.get(operation.key)
            if record is not None:
                # True even where somebody else holds the key: a record that exists does not change.
                self.outcomes[operation.key] = answer(operation, record)
            elif operation.key in held:
                fresh.append(operation)
            else:
                self.outcomes[operation.key] = problems.in_progress()
        return fresh

    async def _lock(self, keys: Sequence[Key]) -> set[Key]:
        if not self.wait:
            return await records.try_locks(self.connection, keys)
        try:
            await records.wait_for_locks(self.connection, keys)
        except psycopg.errors.LockNotAvailable as error:
            raise problems.RefusalError(problems.in_progress()) from error
        return set(keys)

    async def _permit(self, operations: Sequence[Operation]) -> list[Write]:
        revisions = {o.wanted.note_id for o in operations if isinstance(o.wanted, Revise)}
        homes = await self._homes(list(revisions)) if revisions else {}
        places: dict[Key, Place] = {}
        for operation in operations:
            place = _place(operation, homes)
            if place is None:
                self.outcomes[operation.key] = note_not_found()
            else:
                places[operation.key] = place
        if not places:
            return []
        in_force = await grants.lock_and_read(self.connection, dict.fromkeys(places.values()))
        current = await self._current(list(revisions)) if revisions else {}
        revised: set[UUID] = set()
        writes: list[Write] = []
        denied: list[Operation] = []
        for operation in operations:
            place = places.get(operation.key)
            if place is None:
                continue
            grant = in_force.get(place)
            if grant is None:
                denied.append(operation)
                continue
            minted = _mint(operation, place.folder, grant, current, revised)
            if isinstance(minted, Write):
                writes.append(minted)
            else:
                self.outcomes[operation.key] = minted
        await self._deny(denied)
        return writes

    async def _homes(self, note_ids_: list[UUID]) -> dict[UUID, tuple[str, str]]:
        """Tenant and folder of each note; neither ever changes."""
        cursor = await self.connection.execute(statements.NOTES_TO_REVISE, {"ids": note_ids_})
        return {row[0]: (row[1], row[2]) for row in await cursor.fetchall()}

    async def _current(self, note_ids_: list[UUID]) -> dict[UUID, tuple[int, str]]:
        """Version and tag of each note, held until the end: locked first, read in a later statement."""
        await self.connection.execute(statements.NOTES_LOCK, {"ids": note_ids_})
        cursor = await self.connection.execute(statements.NOTES_CURRENT, {"ids": note_ids_})
        return {row[0]: (row[1], row[2]) for row in await cursor.fetchall()}

    async def _deny(self, denied: Sequence[Operation]) -> None:
        creates = [o for o in denied if isinstance(o.wanted, Create)]
        owners = {o.key.owner for o in creates}
        permitted = await grants.permitted_folders(self.connection, owners) if owners else {}
        for operation in denied:
            self.outcomes[operation.key] = (
                grants.not_writable([path for path, _ in permitted[operation.key.owner]])
                if isinstance(operation.wanted, Create)
                else note_not_found()
            )

    async def _write(self, writes: Sequence[Write]) -> None:
        written_at = max(write.grant.read_at for write in writes)
        parameters = _columns(writes) | {
            "written_at": written_at,
            "last_write": self.last_write,
            "token_id": self.token_id,
        }
        cursor = await self.connection.execute(statements.WRITE, parameters)
        done = {row[0] - 1 for row in await cursor.fetchall()}
        missed: list[Operation] = []
        for position, write in enumerate(writes):
            if position in done:
                self.outcomes[write.operation.key] = _made(write, written_at)
            else:
                missed.append(write.operation)
        if missed:
            await self._explain(missed)

    async def _explain(self, missed: Sequence[Operation]) -> None:
        """Nothing was written for these: a record that came to be after all, or no time left."""
        existing = await records.read(self.connection, [operation.key for operation in missed])
        cursor = await self.connection.execute(statements.CLOCK)
        (now,) = (await cursor.fetchall())[0]
        for operation in missed:
            record = existing.get(operation.key)
            if record is not None:
                self.outcomes[operation.key] = answer(operation, record)
            elif now >= operation.deadline:
                self.outcomes[operation.key] = _EXPIRED
            else:
                self.outcomes[operation.key] = problems.busy("the request took longer than its limit")


def answer(operation: Operation, record: Record) -> Outcome:
    """What an existing record says to an operation with its key."""
    if record.args_hash is not None and record.args_hash != operation.wanted.args_hash:
        return Problem(
            "argument_conflict",
            "This key was used for other arguments, and nothing was executed. Send a changed note under a new key.",
            state=record.state,
        )
    if record.note is None or record.args_hash is None:
        return _SEALED
    return Completed(operation.key, record.args_hash, record.note, replayed=True)


def _mint(
    operation: Operation,
    folder: str,
    grant: Grant,
    current: Mapping[UUID, tuple[int, str]],
    revised: set[UUID],
) -> Write | Problem:
    match operation.wanted:
        case Create():
            return Write(operation, note_ids.new(), 1, folder, grant)
        case Revise(note_id, if_match):
            if note_id in revised:
                # Whether its tag will match is known only once the first revision is written or not.
                return problems.busy("another operation of this batch revises the same note")
            version, tag = current[note_id]
            if tag != if_match:
                return _PRECONDITION_FAILED
            revised.add(note_id)
            return Write(operation, note_id, version + 1, folder, grant)


def note_not_found() -> Problem:
    """The same answer for a note that does not exist and for one that the caller may not see."""
    return Problem(
        "note_not_found",
        "No such note is visible to this principal. Check the id and the version, or have its folder granted.",
    )


def _place(operation: Operation, homes: Mapping[UUID, tuple[str, str]]) -> Place | None:
    owner = operation.key.owner
    match operation.wanted:
        case Create(folder):
            return Place(owner, folder)
        case Revise(note_id):
            tenant, folder = homes.get(note_id, ("", ""))
            return Place(owner, folder) if tenant == owner.tenant else None


def _made(write: Write, written_at: datetime) -> Completed:
    args_hash = write.operation.wanted.args_hash
    note = NoteRef(write.note_id, write.folder, write.version, etag(write.version, args_hash), written_at)
    return Completed(write.operation.key, args_hash, note, replayed=False)


def _columns(writes: Sequence[Write]) -> dict[str, Any]:
    operations = [write.operation for write in writes]
    contents = [operation.wanted.content for operation in operations]
    hashes = [operation.wanted.args_hash for operation in operations]
    return {
        "tenants": [operation.key.owner.tenant for operation in operations],
        "principals": [operation.key.owner.principal for operation in operations],
        "keys": [operation.key.value for operation in operations],
        "deadlines": [operation.deadline for operation in operations],
        "hashes": hashes,
        "notes": [write.note_id for write in writes],
        "versions": [write.version for write in writes],
        "folders": [write.folder for write in writes],
        "folder_ids": [write.grant.folder_id for write in writes],
        "grant_ids": [write.grant.id for write in writes],
        "titles": [content.title for content in contents],
        "texts": [content.text for content in contents],
        "formats": [content.format for content in contents],
        "etags": [etag(write.version, args_hash) for write, args_hash in zip(writes, hashes, strict=True)],
        "call_ids": [operation.call_id for operation in operations],
    }


_SEALED: Final = Problem(
    "operation_sealed",
    "This key was sealed: it will never be executed. To save the note after all, send it under a new key.",
)
_EXPIRED: Final = Problem(
    "operation_expired",
    "The deadline passed before the operation could be executed, and nothing was executed. Seal the key; to"
    " save the note after all, send it under a new key.",
)
_PRECONDITION_FAILED: Final = Problem(
    "precondition_failed",
    "The note's etag is another one. Read the note, and send the revision with its etag under a new key.",
)
