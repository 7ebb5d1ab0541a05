"""The promise that a key will never be executed."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import psycopg

from oncebox_notes import database, problems, records, statements
from oncebox_notes.database import Connection, Pool
from oncebox_notes.operations import Key, KeyState, SealRequest, key_columns
from oncebox_notes.problems import Problem, RefusalError

_SHORTEST_WAIT: Final = 0.001


async def seal(
    pool: Pool, wanted: Sequence[SealRequest], wait_seconds: float
) -> Mapping[Key, KeyState | Problem]:
    """Completed or sealed for each key, in a transaction for the free ones and one for each busy one.

    Waits for live transactions, `wait_seconds` for all of them together; then the rest is `in_progress`.
    """
    states: dict[Key, KeyState | Problem] = {}
    try:
        states |= await database.transaction(pool, lambda connection: _seal_free(connection, wanted))
    except RefusalError as refusal:
        return dict.fromkeys((request.key for request in wanted), refusal.problem)
    end = time.monotonic() + wait_seconds
    for request in wanted:
        if request.key not in states:
            wait = max(_SHORTEST_WAIT, end - time.monotonic())
            states[request.key] = await _seal_busy(pool, request, wait)
    return states


async def _seal_free(connection: Connection, wanted: Sequence[SealRequest]) -> dict[Key, KeyState]:
    held = await records.try_locks(connection, [request.key for request in wanted])
    free = [request for request in wanted if request.key in held]
    return await _seal_held(connection, free) if free else {}


async def _seal_busy(pool: Pool, request: SealRequest, wait_seconds: float) -> KeyState | Problem:
    async def work(connection: Connection) -> KeyState:
        timeout = {"lock_timeout": f"{max(1, int(wait_seconds * 1000))}ms"}
        await connection.execute(statements.LOCK_TIMEOUT_LOCAL, timeout)
        try:
            await records.wait_for_locks(connection, [request.key])
        except psycopg.errors.LockNotAvailable as error:
            raise RefusalError(problems.in_progress()) from error
        return (await _seal_held(connection, [request]))[request.key]

    try:
        return await database.transaction(pool, work)
    except RefusalError as refusal:
        return refusal.problem


async def _seal_held(connection: Connection, wanted: Sequence[SealRequest]) -> dict[Key, KeyState]:
    """With the key locks held: a tombstone where there is no record, then what the records say."""
    keys = [request.key for request in wanted]
    columns = key_columns(keys) | {
        "hashes": [request.args_hash for request in wanted],
        "deadlines": [request.deadline for request in wanted],
    }
    await connection.execute(statements.SEAL, columns)
    existing = await records.read(connection, keys)
    cursor = await connection.execute(statements.CLOCK)
    as_of: datetime = (await cursor.fetchall())[0][0]
    return {key: KeyState(key, existing[key].state, as_of, existing[key]) for key in keys}
