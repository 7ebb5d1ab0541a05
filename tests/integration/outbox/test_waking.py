"""The wake-up of the relay is decided at commit: once a transaction, not on a rollback, and never per row."""

from collections.abc import Generator

import psycopg
import pytest
from sqlalchemy.orm import Session

from oncebox_models.outcomes import Outcome
from oncebox_models.tables import SETTLED_CHANNEL, WAKE_CHANNEL
from oncebox_outbox.policy import Policy
from oncebox_outbox.settling import park_poison, settle_unsent
from tests.integration.outbox.scenes import OUTBOX, Sender, counting, saved, write


class Listener:
    """Counts the words on a channel. A word of our own marks the end: words arrive in commit order."""

    def __init__(self, url: str, channel: str) -> None:
        self._url, self._channel = url, channel
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute(f"listen {channel}".encode())

    def words(self) -> int:
        with psycopg.connect(self._url, autocommit=True) as other:
            other.execute("select pg_notify(%s, 'end')", [self._channel])
        for words, notify in enumerate(self._connection.notifies(timeout=10)):
            if notify.payload == "end":
                return words
        raise AssertionError("the word that marks the end did not come")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def ready(sender: Sender) -> Generator[Listener]:
    listener = Listener(sender.url, WAKE_CHANNEL)
    yield listener
    listener.close()


@pytest.fixture
def settled(sender: Sender) -> Generator[Listener]:
    listener = Listener(sender.url, SETTLED_CHANNEL)
    yield listener
    listener.close()


def test_a_transaction_wakes_the_relay_once(sender: Sender, ready: Listener) -> None:
    """F41: however many statements and rows."""
    with Session(sender.agent) as session, session.begin():
        OUTBOX.enqueue_many(session, [write(f"a-{n}") for n in range(50)])
        OUTBOX.enqueue(session, write("b"))
        with session.begin_nested():
            OUTBOX.enqueue(session, write("c"))
        assert ready.words() == 0, "not before the commit"
    assert ready.words() == 1


def test_the_trigger_runs_for_one_row_a_statement(sender: Sender) -> None:
    sender.enqueue(*(write(f"a-{n}") for n in range(50)))
    assert sender.scalar("select count(*) from oncebox.outbox_entry where wakes") == 1


def test_a_rollback_wakes_nobody(sender: Sender, ready: Listener) -> None:
    with Session(sender.agent) as session:
        OUTBOX.enqueue(session, write())
        session.rollback()
    assert ready.words() == 0


def test_what_exists_already_wakes_nobody(sender: Sender, ready: Listener) -> None:
    sender.enqueue_one()
    assert ready.words() == 1
    sender.enqueue(write())
    assert ready.words() == 0


def test_a_slow_agent_does_not_swallow_the_wake_up_of_another(sender: Sender, ready: Listener) -> None:
    """The lock is taken at commit: an open transaction does not hold it."""
    with Session(sender.agent) as slow:
        OUTBOX.enqueue(slow, write("slow"))
        sender.enqueue_one("quick", intent=type(write().intent)("run-2", "step", "why"))
        assert ready.words() == 1
        slow.commit()
    assert ready.words() == 1


def test_committers_at_the_same_time_do_not_queue_for_the_wake_up(sender: Sender) -> None:
    """F41: who does not get the lock goes on without a word."""
    with psycopg.connect(sender.url) as holder:
        holder.execute("select pg_advisory_xact_lock(7070319)")
        sender.enqueue_one()  # would wait for ever for a plain lock
        holder.rollback()


def test_settling_tells_once_a_statement(sender: Sender, settled: Listener) -> None:
    ids = [enqueued.id for enqueued in sender.enqueue(*(write(f"a-{n}") for n in range(5)))]
    assert settled.words() == 0
    (call,) = sender.claim(*ids).calls
    answers = saved(call)
    sender.settle(call, answers)
    assert settled.words() == 1
    sender.settle(call, answers)
    assert settled.words() == 0, "what settles nothing says nothing"


def test_what_stays_live_is_not_told(sender: Sender, settled: Listener) -> None:
    sender.answer(sender.claim_one(sender.enqueue_one()), Outcome.UNKNOWN)
    assert settled.words() == 0


def test_every_other_end_is_told_too(sender: Sender, settled: Listener) -> None:
    expired, poison = sender.enqueue_one("expired"), sender.enqueue_one("poison")
    sender.enqueue_one("cancelled")
    with Session(sender.agent) as session, session.begin():
        OUTBOX.cancel(session, "cancelled")
    assert settled.words() == 1
    sender.expire(expired)
    assert settle_unsent(sender.worker, limit=10) == [expired]
    assert settled.words() == 1
    sender.claim_one(poison)
    sender.lapse(poison)
    assert park_poison(sender.worker, Policy(poison_claims=1), limit=10) == [poison]
    assert settled.words() == 1


def test_an_enqueue_opens_nothing_but_its_own_transaction(sender: Sender) -> None:
    """F17: the statement sent is the only thing that leaves the process."""
    statements = counting(sender.agent)
    sender.enqueue_one()
    assert len(statements) == 1
