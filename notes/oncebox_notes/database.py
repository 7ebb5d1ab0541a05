"""Connections to the service's own PostgreSQL, and how long anything on them may take."""

import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from oncebox_notes import problems, statements
from oncebox_notes.problems import RefusalError
from oncebox_notes.settings import Settings

Connection: TypeAlias = "psycopg.AsyncConnection[tuple[Any, ...]]"
Pool: TypeAlias = "AsyncConnectionPool[Connection]"
T = TypeVar("T")

_SHUTDOWN: Final = "57P"
"""SQLSTATEs of a server or session that ends: a COMMIT answered with one may have taken place."""

_RETRY_LATER: Final = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.QueryCanceled,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.InsufficientResources,
    psycopg.errors.ReadOnlySqlTransaction,
)


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """How the published limit of a request is kept: four parts of it, each enforced where it cannot be missed.

    Half of it until the writing statement begins (PostgreSQL compares its clock with BEGIN plus what was left
    then), a sixth each for that statement, for the gap before COMMIT and for COMMIT (timeouts of the PostgreSQL
    session, which hold even while this process is frozen). Units are seconds.
    """

    until_write: float
    sixth: float

    @classmethod
    def within(cls, seconds: float) -> "TimeBudget":
        return cls(seconds / 2, seconds / 6)


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Runs from the moment a request was admitted."""

    budget: TimeBudget
    started: float = field(default_factory=time.monotonic)

    def left(self) -> timedelta:
        """The time until the writing statement must have begun; taken after BEGIN, it bounds the commit."""
        return timedelta(seconds=self.budget.until_write - (time.monotonic() - self.started))


def open_pool(settings: Settings) -> Pool:
    """A pool that is not open yet; every connection gets the session settings that the guarantees rest on."""
    budget = TimeBudget.within(settings.request_limit_seconds)
    session = {
        "lock_timeout": f"{int(settings.lock_timeout_seconds * 1000)}ms",
        "statement_timeout": f"{int(budget.sixth * 1000)}ms",
        "idle_timeout": f"{int(budget.sixth * 1000)}ms",
    }

    async def configure(connection: Connection) -> None:
        connection.prepare_threshold = 0
        await connection.execute(statements.SESSION_SETTINGS, session)

    return AsyncConnectionPool(
        settings.database_url.get_secret_value(),
        # The primary or nobody: a standby that lags would say `not_found` of what was committed.
        kwargs={
            "autocommit": True,
            "application_name": "oncebox-notes",
            "target_session_attrs": "read-write",
        },
        min_size=1,
        max_size=settings.pool_size,
        timeout=budget.sixth,
        configure=configure,
        open=False,
        name="notes",
    )


async def transaction(pool: Pool, work: Callable[[Connection], Coroutine[Any, Any, T]]) -> T:
    """Runs `work` in one READ COMMITTED transaction and commits it.

    Raises `RefusalError` with `busy` when it is certain that nothing was committed, and with `internal` when the
    connection was lost during COMMIT. A connection that died in the pool is replaced, as it carried nothing.
    """
    for _ in range(pool.max_size + 1):
        try:
            async with pool.connection() as connection:
                try:
                    await connection.execute("BEGIN")
                except psycopg.OperationalError:
                    if connection.closed:
                        continue
                    raise
                # An exception leaves the block of the connection, which rolls back.
                result = await work(connection)
                await _commit(connection)
                return result
        except psycopg.Error as error:
            refuse(error)
    raise RefusalError(problems.busy("the database cannot be reached"))


async def _commit(connection: Connection) -> None:
    try:
        await connection.execute("COMMIT")
    except psycopg.Error as error:
        if connection.closed or error.sqlstate is None or error.sqlstate.startswith(_SHUTDOWN):
            raise RefusalError(problems.internal()) from error
        raise


def refuse(error: psycopg.Error) -> NoReturn:
    """Nothing was committed: the problem that says so, or the error itself when it is a fault of ours."""
    if isinstance(error, psycopg.errors.LockNotAvailable):
        raise RefusalError(problems.busy("a lock was not free in time")) from error
    if isinstance(error, PoolTimeout):
        raise RefusalError(problems.busy("no database connection was free in time")) from error
    if isinstance(error, _RETRY_LATER):
        raise RefusalError(problems.busy("the database did not finish in time")) from error
    if isinstance(error, psycopg.OperationalError):
        raise RefusalError(problems.busy("the database cannot be reached")) from error
    raise _without_row(error)


def _without_row(error: psycopg.Error) -> psycopg.Error:
    """The error as it may be logged: its text goes on with the row that was refused, and the row holds the note."""
    error.args = (str(error).partition("\n")[0], *error.args[1:])
    return error


async def fetch(pool: Pool, query: Any, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of one reading statement, each run on a snapshot of its own."""
    for _ in range(pool.max_size + 1):
        try:
            async with pool.connection() as connection:
                try:
                    return await (await connection.execute(query, parameters)).fetchall()
                except psycopg.OperationalError:
                    if connection.closed:
                        continue
                    raise
        except psycopg.Error as error:
            refuse(error)
    raise RefusalError(problems.busy("the database cannot be reached"))
