"""Wait: wakes on the word of the settling, looks again without it, and ends in time with what is known."""

import time
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy.exc import OperationalError

from oncebox_models.outcomes import Outcome
from oncebox_models.states import State
from oncebox_outbox import OperationNotFound, OperationStatus, Outbox, waiting
from tests.integration.outbox.scenes import OUTBOX, Sender, saved
from tests.support.polling import eventually


@contextmanager
def _waiting(sender: Sender, timeout: float = 20) -> Generator[Future[OperationStatus]]:
    """A wait that has had its first look."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(OUTBOX.wait, sender.agent, "note-7", timeout=timeout)
        eventually(
            lambda: (
                future.done()
                or sender.scalar(
                    "select exists (select from pg_stat_activity where datname = current_database() and application_name = 'agent'"
                    " and query like '%oncebox:find%' and state = 'idle')"
                )
            ),
            what="it listens and has looked",
        )
        yield future


def test_it_returns_what_is_settled_already(sender: Sender) -> None:
    call = sender.claim_one(sender.enqueue_one())
    sender.settle(call, saved(call))
    status = OUTBOX.wait(sender.agent, "note-7", timeout=0)
    assert (status.state, status.final) == (State.SAVED, True)


def test_it_wakes_on_the_word_of_the_settling(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the poll's help."""
    monkeypatch.setattr(waiting, "POLL_S", 60.0)
    call = sender.claim_one(sender.enqueue_one())
    with _waiting(sender) as future:
        assert not future.done()
        sender.settle(call, saved(call))
        assert future.result(5).state is State.SAVED


def test_it_goes_on_waiting_when_another_operation_settles(sender: Sender) -> None:
    ours, other = sender.claim_one(sender.enqueue_one()), sender.claim_one(sender.enqueue_one("other"))
    with _waiting(sender) as future:
        sender.settle(other, saved(other))
        time.sleep(0.2)
        assert not future.done()
        sender.settle(ours, saved(ours))
        assert future.result(5).operation_id == "note-7"


def test_it_finds_out_with_the_word_lost(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "POLL_S", 0.1)
    id = sender.enqueue_one()
    with _waiting(sender) as future:
        sender.change(
            "with settled as (update oncebox.operation set final = 'not_saved', reason = 'test', settled_at = now()"
            " where id = any(:ids) returning id) delete from oncebox.outbox_entry e using settled s where e.id = s.id",
            [id],
        )
        assert future.result(5).state is State.NOT_SAVED


def test_it_ends_in_time_with_what_is_known(sender: Sender) -> None:
    sender.answer(sender.claim_one(sender.enqueue_one()), Outcome.UNKNOWN, "timeout")
    began = time.monotonic()
    status = OUTBOX.wait(sender.agent, "note-7", timeout=0.3)
    assert 0.3 <= time.monotonic() - began < 5
    assert (status.state, status.final) == (State.UNKNOWN, False)
    assert status.say.startswith("OUTCOME UNKNOWN")


def test_a_server_that_goes_away_is_told_by_the_error_of_every_other_call(sender: Sender) -> None:
    """SQLAlchemy's, not the driver's own: who handles the one handles a wait, too."""
    sender.enqueue_one()
    with _waiting(sender) as future:
        sender.scalar(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity"
            " where datname = current_database() and application_name = 'agent'"
        )
        with pytest.raises(OperationalError):
            future.result(5)


def test_needs_review_ends_the_waiting(sender: Sender) -> None:
    """No call will change it soon; a person must."""
    id = sender.enqueue_one()
    for _ in range(3):
        sender.answer(sender.claim_one(id), Outcome.UNAUTHENTICATED)
    assert OUTBOX.wait(sender.agent, "note-7", timeout=20).state is State.NEEDS_REVIEW


@pytest.mark.parametrize("outbox", [OUTBOX, Outbox("demo", "writer")])
def test_what_nobody_enqueued_is_not_waited_for(sender: Sender, outbox: Outbox) -> None:
    if outbox is not OUTBOX:
        sender.enqueue_one()
    with pytest.raises(OperationNotFound):
        outbox.wait(sender.agent, "note-7", timeout=20)


def test_it_leaves_the_callers_pool_as_it_was(sender: Sender) -> None:
    """No open transaction, no listening, no changed isolation."""
    sender.enqueue_one()
    with _waiting(sender, timeout=0.5) as future:
        open_transactions = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'agent' and xact_start is not null"  # fmt: skip
        eventually(
            lambda: sender.scalar(open_transactions) == 0, what="no transaction is open while it waits"
        )
        future.result(5)
    with sender.agent.connect() as connection:
        assert connection.exec_driver_sql("select count(*) from pg_listening_channels()").scalar() == 0
        connection.exec_driver_sql("create temp table mine (n int)")
        connection.rollback()
        assert connection.exec_driver_sql("select to_regclass('mine')").scalar() is None, "commits by itself"
