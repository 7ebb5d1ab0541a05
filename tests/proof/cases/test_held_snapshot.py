"""Somebody's transaction stays open for a long time: what it might still want to see cannot be cleared away."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime

import psycopg
import pytest

from oncebox_outbox.claiming import dispatch
from tests.integration.outbox import scenes
from tests.integration.outbox.scenes import POLICY, Sender, saved, write

ROUNDS, OPERATIONS, CHUNK = 5, 500, 100
DEAD = 80_000


@pytest.fixture
def sender(sender_database: str) -> Generator[Sender]:
    with scenes.sender(sender_database) as parties:
        yield parties


@contextmanager
def held_snapshot(sender: Sender) -> Generator[None]:
    """A transaction that reads once and goes on sitting there."""
    with psycopg.connect(sender.url) as holder:
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select count(*) from oncebox.outbox_entry")
        yield


def work(sender: Sender, name: str) -> float:
    """Enqueue, dispatch, claim and settle many operations; operations a second."""
    began = time.monotonic()
    for number in range(ROUNDS):
        sender.enqueue(*(write(f"{name}-{number}-{n}") for n in range(OPERATIONS)))
        ids = sender.dispatched(limit=2 * OPERATIONS)
        for begin in range(0, len(ids), CHUNK):
            (call,) = sender.claim(*ids[begin : begin + CHUNK]).calls
            sender.settle(call, saved(call))
    assert sender.rows("select from oncebox.outbox_entry") == []
    return ROUNDS * OPERATIONS / (time.monotonic() - began)


def scan(sender: Sender, mark: datetime | None) -> float:
    """Seconds of the quickest of five looks for what is due, when nothing is."""
    took: list[float] = []
    for _ in range(5):
        began = time.monotonic()
        assert dispatch(sender.worker, POLICY, low_mark=mark, limit=2_000) == []
        took.append(time.monotonic() - began)
    return min(took)


def test_a_snapshot_that_is_held_for_long_costs_a_bounded_part_of_the_rate(sender: Sender) -> None:
    """F43: with the leavings of minutes under load that no vacuum may remove, the whole path keeps more than a third of its
    rate: it looks rows up by key, and the relay's look from its mark does not walk over what is dead."""
    work(sender, "warm")
    free = work(sender, "free")
    with held_snapshot(sender):
        leave_dead_entries(sender)
        held = work(sender, "held")
        mark = sender.scalar("select clock_timestamp()")
        whole, marked = scan(sender, None), scan(sender, mark)
    print(
        f"{free:.0f}/s free, {held:.0f}/s held; a look takes {whole * 1000:.1f} ms, {marked * 1000:.1f} ms from the mark"
    )
    assert held > free / 3
    assert marked < whole / 3, "what lies behind the mark is not looked at"


def leave_dead_entries(sender: Sender) -> None:
    """As many dead index entries as that many back-offs leave: each puts an entry off by an indexed column."""
    ids = [enqueued.id for enqueued in sender.enqueue(*(write(f"dead-{n}") for n in range(1_000)))]
    for _ in range(DEAD // len(ids)):
        sender.change("update oncebox.outbox_entry set ready_at = ready_at - interval '1 ms'", ())
    (dead,) = sender.rows("select count(*) as entries from oncebox.outbox_entry")
    assert dead.entries == len(ids)
    for begin in range(0, len(ids), CHUNK):
        (call,) = sender.claim(*ids[begin : begin + CHUNK]).calls
        sender.settle(call, saved(call))
