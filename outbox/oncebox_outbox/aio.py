"""The outbox for asyncio programs: the same names over the same body."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import psycopg
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession

from oncebox_models.tables import SETTLED_CHANNEL
from oncebox_outbox.enqueue import Enqueued
from oncebox_outbox.errors import ArgumentConflict, InvalidOperation
from oncebox_outbox.intents import Intent
from oncebox_outbox.outbox import Outbox
from oncebox_outbox.status import OperationStatus
from oncebox_outbox.waiting import POLL_S
from oncebox_outbox.writes import Write


@dataclass(frozen=True, slots=True)
class AsyncOutbox:
    """`Outbox` with `await`. Sessions are AsyncSession, engines AsyncEngine; everything else is the same."""

    tenant: str
    principal: str
    destination: str = "notes"

    async def save_note(
        self,
        session: AsyncSession,
        intent: Intent,
        *,
        folder: str,
        title: str,
        text: str,
        format: str = "markdown",
        operation_id: str | None = None,
        deadline: datetime | timedelta | None = None,
        ordering_key: str | None = None,
        supersedes: UUID | None = None,
    ) -> Enqueued:
        """See `Outbox.save_note`."""
        return await session.run_sync(
            self._outbox.save_note,
            intent,
            folder=folder,
            title=title,
            text=text,
            format=format,
            operation_id=operation_id,
            deadline=deadline,
            ordering_key=ordering_key,
            supersedes=supersedes,
        )

    async def revise_note(
        self,
        session: AsyncSession,
        intent: Intent,
        *,
        note_id: str,
        if_match: str,
        title: str,
        text: str,
        format: str = "markdown",
        operation_id: str | None = None,
        deadline: datetime | timedelta | None = None,
        ordering_key: str | None = None,
        supersedes: UUID | None = None,
    ) -> Enqueued:
        """See `Outbox.revise_note`."""
        return await session.run_sync(
            self._outbox.revise_note,
            intent,
            note_id=note_id,
            if_match=if_match,
            title=title,
            text=text,
            format=format,
            operation_id=operation_id,
            deadline=deadline,
            ordering_key=ordering_key,
            supersedes=supersedes,
        )

    async def enqueue(self, session: AsyncSession, write: Write) -> Enqueued:
        """See `Outbox.enqueue`."""
        return await session.run_sync(self._outbox.enqueue, write)

    async def enqueue_many(
        self, session: AsyncSession, writes: Sequence[Write]
    ) -> list[Enqueued | InvalidOperation | ArgumentConflict]:
        """See `Outbox.enqueue_many`."""
        return await session.run_sync(self._outbox.enqueue_many, writes)

    async def status(self, session: AsyncSession, operation_id: str) -> OperationStatus:
        """See `Outbox.status`."""
        return await session.run_sync(self._outbox.status, operation_id)

    async def cancel(self, session: AsyncSession, operation_id: str) -> OperationStatus:
        """See `Outbox.cancel`."""
        return await session.run_sync(self._outbox.cancel, operation_id)

    async def wait(self, engine: AsyncEngine, operation_id: str, *, timeout: float) -> OperationStatus:
        """See `Outbox.wait`."""
        end = asyncio.get_running_loop().time() + timeout
        async with engine.connect() as connection:
            listening = await connection.execution_options(isolation_level="AUTOCOMMIT")
            try:
                await listening.execute(text(f"listen {SETTLED_CHANNEL}"))
                known = await self._look_until(listening, operation_id, end)
            except BaseException:
                # It may be in the middle of something (a cancelled task): it does not go back to a pool.
                await listening.invalidate()
                raise
            await listening.execute(text(f"unlisten {SETTLED_CHANNEL}"))
            return known

    async def _look_until(self, listening: AsyncConnection, operation_id: str, end: float) -> OperationStatus:
        def look(connection: Connection) -> OperationStatus:
            return self._outbox.status(connection, operation_id)

        while True:
            status = await listening.run_sync(look)
            left_s = end - asyncio.get_running_loop().time()
            if status.final or left_s <= 0:
                return status
            raw = await listening.get_raw_connection()
            await _next_word(raw.driver_connection, min(left_s, POLL_S))

    @property
    def _outbox(self) -> Outbox:
        return Outbox(self.tenant, self.principal, self.destination)


async def _next_word(driver_connection: object, timeout_s: float) -> None:
    if not isinstance(driver_connection, psycopg.AsyncConnection):
        raise TypeError(
            f"wait needs psycopg 3, got {type(driver_connection).__name__}; use postgresql+psycopg://"
        )
    # As in `waiting`: the next look says that the connection is lost.
    with suppress(psycopg.OperationalError):
        async for _ in driver_connection.notifies(timeout=timeout_s, stop_after=1):
            return
