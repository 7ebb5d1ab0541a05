"""The asynchronous outbox: the same scenarios over the same body."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from oncebox_models.states import State
from oncebox_outbox import ArgumentConflict, Enqueued, InvalidOperation, OperationNotFound, waiting
from oncebox_outbox.aio import AsyncOutbox
from tests.integration.outbox.scenes import WHY, Sender, saved, write

OUTBOX = AsyncOutbox("demo", "researcher")


def _run(sender: Sender, scenario: Callable[[AsyncEngine], Awaitable[None]]) -> None:
    async def main() -> None:
        engine = create_async_engine(sender.agent.url)
        try:
            await scenario(engine)
        finally:
            await engine.dispose()

    asyncio.run(main())


async def _save(session: AsyncSession, text: str = "Reef B") -> Enqueued:
    return await OUTBOX.save_note(session, WHY, operation_id="note-7", folder="drafts", title="t", text=text)


def test_a_write_is_enqueued_once_and_a_rollback_leaves_nothing(sender: Sender) -> None:
    async def scenario(engine: AsyncEngine) -> None:
        async with AsyncSession(engine) as session:
            await _save(session)
            await session.rollback()
        async with AsyncSession(engine) as session, session.begin():
            assert (await _save(session)).created
            assert not (await _save(session)).created
            with pytest.raises(ArgumentConflict):
                await _save(session, "changed")
            with pytest.raises(InvalidOperation):
                await OUTBOX.enqueue(session, write(" "))
            revise = await OUTBOX.revise_note(
                session, WHY, note_id="n-1", if_match='"1"', title="t", text="t", operation_id="note-7-b"
            )
            assert revise.created
            assert len(await OUTBOX.enqueue_many(session, [write("a"), write("b")])) == 2
            assert (await OUTBOX.status(session, "note-7")).state is State.PENDING
            assert (await OUTBOX.cancel(session, "a")).state is State.NOT_SAVED

    _run(sender, scenario)
    assert sender.scalar("select count(*) from oncebox.operation") == 4
    assert sender.scalar("select count(*) from oncebox.outbox_entry") == 3


def test_wait_wakes_on_the_word_of_the_settling(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oncebox_outbox.aio.POLL_S", 60.0)
    call = sender.claim_one(sender.enqueue_one())

    async def scenario(engine: AsyncEngine) -> None:
        task = asyncio.create_task(OUTBOX.wait(engine, "note-7", timeout=20))
        listening = "select exists (select from pg_stat_activity where datname = current_database() and query like '%oncebox:find%' and state = 'idle')"  # fmt: skip
        while not await asyncio.to_thread(sender.scalar, listening):
            assert not task.done()
        await asyncio.to_thread(sender.settle, call, saved(call))
        assert (await asyncio.wait_for(task, 5)).state is State.SAVED

    _run(sender, scenario)
    assert waiting.POLL_S == 1.0


def test_a_server_that_goes_away_is_told_by_the_error_of_every_other_call(sender: Sender) -> None:
    sender.enqueue_one()

    async def scenario(engine: AsyncEngine) -> None:
        task = asyncio.create_task(OUTBOX.wait(engine, "note-7", timeout=20))
        ended = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and query like '%oncebox:find%' and state = 'idle' and pid <> pg_backend_pid()"  # fmt: skip
        while not await asyncio.to_thread(sender.scalar, ended):
            assert not task.done()
        with pytest.raises(OperationalError):
            await asyncio.wait_for(task, 5)

    _run(sender, scenario)


def test_wait_ends_in_time_and_knows_nobody(sender: Sender) -> None:
    sender.enqueue_one()

    async def scenario(engine: AsyncEngine) -> None:
        assert (await OUTBOX.wait(engine, "note-7", timeout=0.1)).state is State.PENDING
        with pytest.raises(OperationNotFound):
            await OUTBOX.wait(engine, "note-8", timeout=5)

    _run(sender, scenario)


@pytest.mark.parametrize("after_s", [0.001, 0.003, 0.006, 0.01, 0.02, 0.2])
def test_a_wait_that_is_cancelled_leaves_the_connection_usable(sender: Sender, after_s: float) -> None:
    """Wherever it strikes: while a statement runs, or between two looks. Cancelling is all that the caller sees."""
    sender.enqueue_one()

    async def scenario(engine: AsyncEngine) -> None:
        async with engine.connect():
            pass  # a connection that waits in the pool, so that the cancel meets the waiting and not the connecting
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(OUTBOX.wait(engine, "note-7", timeout=20), after_s)
        async with AsyncSession(engine) as session:
            assert (await OUTBOX.status(session, "note-7")).state is State.PENDING

    _run(sender, scenario)
