"""One ordering key is delivered one after another in commit order; other keys do not wait."""

import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

import pytest
import sqlalchemy as sa

from oncebox_models.outcomes import Outcome
from oncebox_models.states import State
from oncebox_outbox import Enqueued, Intent, Outbox, insights, listing
from oncebox_outbox.policy import Policy
from oncebox_outbox.settling import park_poison
from tests.integration.outbox.scenes import LEVELS, OUTBOX, Sender, saved, write

Value = TypeVar("Value")


@contextmanager
def _in_background(run: Callable[[], Value]) -> Generator[Future[Value]]:
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(run)


def _second_engine(sender: Sender, level: str = "READ COMMITTED") -> sa.Engine:
    return sa.create_engine(
        sender.agent.url,
        isolation_level=level,
        connect_args={"application_name": "second"},
        poolclass=sa.NullPool,
    )


def _why(step: str) -> Intent:
    return Intent("run-1", step, "why")


def _commit_one(engine: sa.Engine, operation_id: str, key: str | None) -> Enqueued:
    with engine.begin() as connection:
        return OUTBOX.enqueue(connection, write(operation_id, ordering_key=key, intent=_why(operation_id)))


def _by_sequence(sender: Sender) -> list[str]:
    rows = sender.rows(
        "select o.operation_id from oncebox.outbox_entry e join oncebox.operation o using (id) order by e.ordering_seq"
    )
    return [row.operation_id for row in rows]


@pytest.mark.parametrize("level", LEVELS)
def test_the_second_of_a_key_waits_for_the_first_to_commit(sender: Sender, level: str) -> None:
    """F33: T1 enqueues first and sleeps; T2 of the same key cannot get in front of it, nor commit before it."""
    with sender.agent.connect() as slow:
        OUTBOX.enqueue(slow, write("first", ordering_key="k", intent=_why("1")))
        with _in_background(lambda: _commit_one(_second_engine(sender, level), "second", "k")) as second:
            sender.wait_until_blocked("second")
            assert not second.done()
            slow.commit()
            assert second.result(10).created
    assert _by_sequence(sender) == ["first", "second"]


def test_when_the_first_rolls_back_the_second_is_the_first(sender: Sender) -> None:
    with sender.agent.connect() as slow:
        OUTBOX.enqueue(slow, write("first", ordering_key="k", intent=_why("1")))
        with _in_background(lambda: _commit_one(_second_engine(sender), "second", "k")) as second:
            sender.wait_until_blocked("second")
            slow.rollback()
            id = second.result(10).id
    assert sender.dispatched() == [id]


@pytest.mark.parametrize("key", ["other", None])
def test_another_key_and_no_key_do_not_wait(sender: Sender, key: str | None) -> None:
    with sender.agent.connect() as slow:
        OUTBOX.enqueue(slow, write("first", ordering_key="k", intent=_why("1")))
        assert _commit_one(_second_engine(sender), "second", key).created
        slow.rollback()


def test_the_same_key_of_another_party_does_not_wait(sender: Sender) -> None:
    with sender.agent.connect() as slow:
        OUTBOX.enqueue(slow, write("first", ordering_key="k"))
        (theirs,) = sender.enqueue(write("first", ordering_key="k"), outbox=Outbox("demo", "writer"))
        assert sender.dispatched() == [theirs.id]
        slow.commit()
    assert len(sender.dispatched()) == 1


def test_a_batch_keeps_the_order_of_its_writes(sender: Sender) -> None:
    names = [f"n-{n}" for n in (5, 3, 9, 1, 7)]
    sender.enqueue(*(write(name, ordering_key="k") for name in names))
    assert _by_sequence(sender) == names


def test_batches_with_keys_in_opposite_orders_do_not_deadlock(sender: Sender) -> None:
    """The keys are locked in sorted order. Many rounds at once, on four connections."""
    keys, together = ["k1", "k2", "k3"], threading.Barrier(4)

    def rounds(party: int) -> int:
        engine, created = _second_engine(sender), 0
        order = keys if party % 2 else keys[::-1]
        together.wait(10)
        for n in range(10):
            with engine.begin() as connection:
                writes = [
                    write(f"{party}-{n}-{key}", ordering_key=key, intent=_why(f"{party}-{n}"))
                    for key in order
                ]
                created += sum(
                    isinstance(o, Enqueued) and o.created for o in OUTBOX.enqueue_many(connection, writes)
                )
        return created

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(rounds, range(4))) == [30] * 4
    assert sender.scalar("select count(distinct ordering_seq) from oncebox.outbox_entry") == 120


def _two(sender: Sender, key: str = "k") -> tuple[UUID, UUID]:
    first, second = sender.enqueue(write(f"{key}-1", ordering_key=key), write(f"{key}-2", ordering_key=key))
    return first.id, second.id


def _is_head(sender: Sender, id: UUID) -> bool:
    """Neither dispatched nor claimed unless it is; looks at both without keeping the stamp or the lease."""
    sender.change(
        "update oncebox.outbox_entry set dispatched_at = null, ready_at = now() where id = any(:ids)", [id]
    )
    dispatched = id in sender.dispatched()
    claimed = any(call.operations for call in sender.claim(id).calls)
    assert dispatched == claimed
    return claimed


def test_the_second_is_neither_dispatched_nor_claimed_until_the_first_is_settled(sender: Sender) -> None:
    first, second = _two(sender)
    assert not _is_head(sender, second)
    call = sender.claim_one(first)
    assert not _is_head(sender, second), "while the first is being sent"
    sender.lapse(first)
    assert not _is_head(sender, second), "while the first is unknown"
    call = sender.claim_one(first)
    sender.answer(call, Outcome.NOT_EXECUTED, "busy")
    assert not _is_head(sender, second), "while the first is in back-off"
    sender.settle(sender.claim_one(first), saved(call))
    assert _is_head(sender, second)


def test_a_head_in_back_off_blocks_its_key_and_no_other(sender: Sender) -> None:
    """F34: strict. The first is due in an hour, the second now."""
    first, second = _two(sender)
    _, _ = _two(sender, "other")
    sender.change(
        "update oncebox.outbox_entry set ready_at = now() + interval '1 h' where id = any(:ids)", [first]
    )
    dispatched = sender.dispatched()
    assert second not in dispatched
    assert len(dispatched) == 1, "the head of the other key"


def test_a_batch_claim_takes_one_operation_a_key(sender: Sender) -> None:
    first, second = _two(sender)
    (alone,) = sender.enqueue(write("alone"))
    (call,) = sender.claim(second, first, alone.id).calls
    assert {operation.outgoing.id for operation in call.operations} == {first, alone.id}


def test_a_locked_head_still_blocks(sender: Sender) -> None:
    """Choosing among unlocked entries would let the second overtake."""
    first, second = _two(sender)
    with sender.agent.connect() as holder:
        holder.execute(sa.text("select from oncebox.outbox_entry where id = :id for update"), {"id": first})
        assert not _is_head(sender, second)
        holder.rollback()


@pytest.mark.parametrize("end", [Outcome.SEALED, Outcome.CONFLICT])
def test_an_end_with_proof_frees_the_key(sender: Sender, end: Outcome) -> None:
    first, second = _two(sender)
    sender.answer(sender.claim_one(first), end)
    assert _is_head(sender, second)


def test_a_cancelled_head_frees_the_key(sender: Sender) -> None:
    """F35: what a person can do about one that nothing moves on."""
    _, second = _two(sender)
    with sender.agent.begin() as connection:
        assert OUTBOX.cancel(connection, "k-1").state is State.NOT_SAVED
    assert _is_head(sender, second)


def test_a_parked_head_blocks_its_key_until_a_person_decides(sender: Sender) -> None:
    """F35: never silently overtaken; the listing shows what blocks, and the lag how long the others have waited."""
    first, second = _two(sender)
    third = sender.enqueue_one("k-3", ordering_key="k")
    policy = Policy(poison_claims=1)
    sender.claim_one(first)
    sender.lapse(first)
    assert park_poison(sender.worker, policy, limit=10) == [first]
    assert not _is_head(sender, second)
    assert not _is_head(sender, third)
    with sender.agent.connect() as connection:
        wanted = listing.Filter(states=[State.NEEDS_REVIEW])
        assert [found.operation_id for found in listing.operations(connection, wanted, limit=10)] == ["k-1"]
        waiting = insights.lag(connection)
    assert waiting.entries == 2
    assert waiting.oldest_age_s > 0
    assert _is_head(sender, _two(sender, "other")[0]), "another key goes on"


def test_a_head_whose_access_was_lost_blocks_its_key(sender: Sender) -> None:
    """F35."""
    first, second = _two(sender)
    for _ in range(3):
        sender.answer(sender.claim_one(first), Outcome.UNAUTHENTICATED, "unauthenticated")
    assert sender.status("k-1").state is State.NEEDS_REVIEW
    assert not _is_head(sender, second)


def test_the_next_of_a_key_enqueued_later_waits_too(sender: Sender) -> None:
    first = sender.enqueue_one("k-1", ordering_key="k", deadline=timedelta(hours=1))
    assert sender.dispatched() == [first]
    second = sender.enqueue_one("k-2", ordering_key="k")
    assert sender.dispatched() == []
    assert not _is_head(sender, second)
