"""One operation or a set of them through the writing transaction, and a set that fails one by one."""

from collections.abc import Mapping, Sequence

import psycopg
import structlog

from oncebox_notes import database, problems
from oncebox_notes.database import Connection, Pool, Stopwatch
from oncebox_notes.execution import Execution
from oncebox_notes.operations import Key, Operation, Outcome
from oncebox_notes.problems import Problem, RefusalError

_log = structlog.stdlib.get_logger(__name__)


async def execute(
    pool: Pool, operations: Sequence[Operation], token_id: str, watch: Stopwatch, *, wait: bool
) -> Mapping[Key, Outcome]:
    """An outcome for each key, from one transaction; raises `RefusalError` when there was none."""

    async def work(connection: Connection) -> Mapping[Key, Outcome]:
        left = watch.left()
        if left.total_seconds() <= 0:
            raise RefusalError(problems.busy("the request took longer than its limit"))
        return await Execution(connection, token_id, left, wait).run(operations)

    return await database.transaction(pool, work)


async def execute_set(
    pool: Pool, operations: Sequence[Operation], token_id: str, watch: Stopwatch
) -> Mapping[Key, Outcome]:
    """An outcome for each key. A set that fails is repeated one operation at a time: its keys make that safe."""
    try:
        return await execute(pool, operations, token_id, watch, wait=False)
    except RefusalError as refusal:
        if refusal.problem.code == "internal":
            return dict.fromkeys((operation.key for operation in operations), refusal.problem)
        _log.warning("batch_fell_back", operations=len(operations), problem=refusal.problem.code)
    except psycopg.Error as error:
        _log.warning("batch_fell_back", operations=len(operations), sqlstate=error.sqlstate)
    return {operation.key: await _alone(pool, operation, token_id, watch) for operation in operations}


async def _alone(pool: Pool, operation: Operation, token_id: str, watch: Stopwatch) -> Outcome:
    if watch.left().total_seconds() <= 0:
        return problems.busy("the request took longer than its limit")
    try:
        outcomes = await execute(pool, [operation], token_id, watch, wait=False)
    except RefusalError as refusal:
        return refusal.problem
    except psycopg.Error:
        _log.exception("operation_failed", key=operation.key.value[:8])
        return Problem("internal", problems.internal().detail)
    return outcomes[operation.key]
