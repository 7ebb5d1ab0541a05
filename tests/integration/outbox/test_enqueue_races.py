"""Two transactions want the same identity: one operation, whoever is first, at every isolation level."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from oncebox_models.states import State
from oncebox_outbox import ArgumentConflict, Enqueued, Intent, RetryTransaction
from tests.integration.outbox import racer
from tests.integration.outbox.scenes import LEVELS, OUTBOX, READ_COMMITTED, SNAPSHOTS, Sender, write
from tests.support.databases import ROOT
from tests.support.polling import eventually


class Background:
    """A call in a thread: what it returned or raised."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self._run = run
        self._outcome: Any = None
        self._thread = threading.Thread(target=self._catch, daemon=True)
        self._thread.start()

    def _catch(self) -> None:
        try:
            self._outcome = self._run()
        except Exception as error:
            self._outcome = error

    def outcome(self) -> Any:
        self._thread.join(10)
        assert not self._thread.is_alive(), "still waiting after 10 s"
        return self._outcome


@contextmanager
def _loser(sender: Sender, level: str, *, nested: bool) -> Generator[Session]:
    """A transaction of a connection named `loser`, whose snapshot is taken already."""
    engine = sa.create_engine(
        sender.agent.url,
        isolation_level=level,
        connect_args={"application_name": "loser"},
        poolclass=sa.NullPool,
    )
    with Session(engine) as session:
        session.execute(sa.text("select count(*) from oncebox.operation"))
        if nested:
            session.begin_nested()
        yield session


def _operations(sender: Sender) -> int:
    assert sender.scalar("select count(*) from oncebox.operation") == sender.scalar(
        "select count(*) from oncebox.outbox_entry"
    )
    return sender.scalar("select count(*) from oncebox.operation")


NESTED = pytest.mark.parametrize("nested", [False, True], ids=["plain", "savepoint"])


@NESTED
@pytest.mark.parametrize("text", ["Reef B", "changed"], ids=["same", "other"])
def test_read_committed_waits_for_the_winner_and_sees_its_operation(
    sender: Sender, nested: bool, text: str
) -> None:
    """R6, R7, R9: a new statement sees what the insert waited for, and the transaction stays usable."""
    with sender.agent.connect() as winner, _loser(sender, READ_COMMITTED, nested=nested) as session:
        won = OUTBOX.enqueue(winner, write())
        losing = Background(lambda: OUTBOX.enqueue(session, write(text=text)))
        sender.wait_until_blocked("loser")
        winner.commit()
        lost = losing.outcome()
        if text == "changed":
            assert isinstance(lost, ArgumentConflict)
        else:
            assert (lost.id, lost.created, lost.state) == (won.id, False, State.PENDING)
        assert OUTBOX.enqueue(session, write("note-8")).created
        session.get_transaction().commit()  # pyright: ignore[reportOptionalMemberAccess] (begun above)
    assert _operations(sender) == 2


@NESTED
@pytest.mark.parametrize("level", SNAPSHOTS)
def test_a_snapshot_that_cannot_see_the_winner_is_to_be_retried(
    sender: Sender, level: str, nested: bool
) -> None:
    """R8: bounded, typed, with what to do; the second run finds the operation."""
    with sender.agent.connect() as winner, _loser(sender, level, nested=nested) as session:
        won = OUTBOX.enqueue(winner, write())
        losing = Background(lambda: OUTBOX.enqueue(session, write()))
        sender.wait_until_blocked("loser")
        winner.commit()
        assert isinstance(lost := losing.outcome(), RetryTransaction)
        assert "roll it back and run it again" in str(lost)
    with _loser(sender, level, nested=nested) as session:
        again = OUTBOX.enqueue(session, write())
        assert (again.id, again.created) == (won.id, False)
    assert _operations(sender) == 1


@NESTED
@pytest.mark.parametrize("level", LEVELS)
def test_when_the_first_rolls_back_the_second_creates_it(sender: Sender, level: str, nested: bool) -> None:
    with sender.agent.connect() as first, _loser(sender, level, nested=nested) as session:
        OUTBOX.enqueue(first, write())
        waiting = Background(lambda: OUTBOX.enqueue(session, write()))
        sender.wait_until_blocked("loser")
        first.rollback()
        assert waiting.outcome().created
        while session.in_nested_transaction():
            session.commit()
        session.commit()
    assert _operations(sender) == 1


@NESTED
@pytest.mark.parametrize("level", LEVELS)
def test_a_winner_that_committed_after_the_snapshot(sender: Sender, level: str, nested: bool) -> None:
    """Nobody waits here: the row is there, but a snapshot cannot see it."""
    with _loser(sender, level, nested=nested) as session:
        id = sender.enqueue_one()
        if level == READ_COMMITTED:
            lost = OUTBOX.enqueue(session, write())
            assert (lost.id, lost.created) == (id, False)
        else:
            with pytest.raises(RetryTransaction):
                OUTBOX.enqueue(session, write())
    assert _operations(sender) == 1


@pytest.mark.parametrize("level", LEVELS)
def test_both_orders_of_two_names_end_in_a_retry_and_not_in_a_half(sender: Sender, level: str) -> None:
    """Two callers enqueue the same two names in opposite orders, one by one: a deadlock is to be retried."""
    ours, theirs = Intent("run-1", "ours", "why"), Intent("run-1", "theirs", "why")
    with sender.agent.connect() as one, _loser(sender, level, nested=False) as session:
        OUTBOX.enqueue(one, write("a", intent=ours))
        OUTBOX.enqueue(session, write("b", intent=theirs))
        waiting = Background(lambda: OUTBOX.enqueue(session, write("a", intent=theirs)))
        sender.wait_until_blocked("loser")
        try:
            assert OUTBOX.enqueue(one, write("b", intent=ours)).created
        except RetryTransaction:
            one.rollback()
            assert waiting.outcome().created
        else:
            assert isinstance(waiting.outcome(), RetryTransaction)
            session.rollback()
        one.rollback()
        session.rollback()
    sender.enqueue(write("a"), write("b"))
    assert _operations(sender) == 2


def test_batches_in_opposite_orders_do_not_deadlock(sender: Sender) -> None:
    """A batch inserts in sorted order, whatever the order of its writes: the name in the middle is held until both
    batches have come, so that each would hold what the other wants."""

    def batch(application: str, *names: str) -> list[bool]:
        engine = sa.create_engine(
            sender.agent.url, connect_args={"application_name": application}, poolclass=sa.NullPool
        )
        with engine.begin() as connection:
            outcomes = OUTBOX.enqueue_many(connection, [write(name) for name in names])
        return [isinstance(outcome, Enqueued) and outcome.created for outcome in outcomes]

    with sender.agent.connect() as holder:
        OUTBOX.enqueue(holder, write("m", intent=Intent("run-1", "holds", "why")))
        forwards = Background(lambda: batch("forwards", "a", "m", "z"))
        sender.wait_until_blocked("forwards")
        backwards = Background(lambda: batch("backwards", "z", "m", "a"))
        sender.wait_until_blocked("backwards")
        holder.rollback()
    assert forwards.outcome() == [True, True, True]
    assert backwards.outcome() == [False, False, False]
    assert _operations(sender) == 3


def test_sixteen_processes_with_the_same_two_hundred_identities(sender: Sender) -> None:
    """Issue 2, 3: 200 operations and 200 entries, each created once, at all isolation levels at once."""
    processes = 16
    command = [sys.executable, "-m", "tests.integration.outbox.racer", sender.url, str(processes)]
    with sender.agent.connect() as starter:
        starter.execute(sa.text("select pg_advisory_xact_lock(:lock)"), {"lock": racer.START_LOCK})
        racers = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        eventually(
            lambda: (
                sender.scalar(
                    "select count(*) from pg_stat_activity where datname = current_database()"
                    " and application_name = 'racer' and wait_event = 'advisory'"
                )
                == processes
            ),
            timeout=30,
            what="all racers have come",
        )
        starter.rollback()
    output, errors = racers.communicate(timeout=60)
    assert (errors, racers.returncode) == ("", 0)
    told = [Counter(json.loads(line)) for line in output.splitlines()]
    assert len(told) == processes
    assert all(each["created"] + each["existing"] == racer.IDENTITIES for each in told)
    assert sum(each["created"] for each in told) == racer.IDENTITIES
    assert _operations(sender) == racer.IDENTITIES
    assert sender.scalar("select count(*) from oncebox.intent") == 1
