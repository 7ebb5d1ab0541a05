"""Prune forgets what need not be kept, and never what a promise rests on."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from oncebox_models.outcomes import Outcome
from oncebox_models.states import State
from oncebox_outbox import ArgumentConflict, Intent, listing
from oncebox_outbox.policy import Policy
from oncebox_outbox.pruning import Pruned, prunable, prune
from oncebox_outbox.settling import park_poison
from tests.integration.outbox.scenes import OUTBOX, Sender, saved, write
from tests.support.polling import eventually

DAY_S = 86_400.0
OLD = timedelta(days=2)


def _saved(sender: Sender, *names: str, **more: Any) -> list[UUID]:
    ids = [enqueued.id for enqueued in sender.enqueue(*(write(name, **more) for name in names))]
    (call,) = sender.claim(*ids).calls
    sender.settle(call, saved(call))
    return ids


def test_identity_hash_end_and_receipt_stay_for_ever(sender: Sender) -> None:
    (id,) = _saved(sender, "note-7", intent=Intent("r", "s", "why", {"model": "a"}, {"traceparent": "00"}))
    sender.age(id, by=OLD)
    before = sender.operation(id)
    assert prunable(sender.worker, older_than_s=DAY_S) == 1
    assert prune(sender.worker, older_than_s=DAY_S) == Pruned(operations=1, calls=1)
    after = sender.operation(id)
    assert after.arguments is None
    kept = set(before._fields) - {"arguments"}
    assert {name: getattr(after, name) for name in kept} == {name: getattr(before, name) for name in kept}
    (intent,) = sender.rows("select purpose, context, trace_context from oncebox.intent")
    assert tuple(intent) == ("why", None, None)
    assert sender.rows("select from oncebox.call") == []
    assert prunable(sender.worker, older_than_s=DAY_S) == 0


def test_a_pruned_operation_still_answers_an_enqueue(sender: Sender) -> None:
    """F11, R42: the promise outlives the arguments: no duplicate after the retention either."""
    (id,) = _saved(sender, "note-7")
    sender.age(id, by=OLD)
    prune(sender.worker, older_than_s=DAY_S)
    (again,) = sender.enqueue(write())
    assert (again.id, again.created, again.state) == (id, False, State.SAVED)
    assert again.receipt is not None
    with sender.agent.connect() as connection, pytest.raises(ArgumentConflict):
        OUTBOX.enqueue(connection, write(text="changed"))
    assert sender.status().say.startswith("Saved:")


def test_what_is_not_settled_or_not_old_or_in_review_is_never_pruned(sender: Sender) -> None:
    recent, old = _saved(sender, "recent", "old")
    live, unknown, poison = (sender.enqueue_one(name) for name in ("live", "unknown", "poison"))
    sender.answer(sender.claim_one(unknown), Outcome.UNKNOWN)
    sender.claim_one(poison)
    sender.lapse(poison)
    park_poison(sender.worker, Policy(poison_claims=1), limit=1)
    sender.age(old, poison, by=OLD)
    sender.change("update oncebox.operation set created_at = created_at - interval '9 d'", ())
    prune(sender.worker, older_than_s=DAY_S)
    emptied = {
        row.operation_id
        for row in sender.rows("select operation_id from oncebox.operation where arguments is null")
    }
    assert emptied == {"old"}
    assert {recent, live} <= {
        row.id for row in sender.rows("select id from oncebox.operation where arguments is not null")
    }
    with sender.agent.connect() as connection:
        assert [call.outcome for call in listing.timeline(connection, unknown)] == ["unknown"], (
            "evidence stays"
        )
        assert [call.reason for call in listing.timeline(connection, poison)] == ["lease_lapsed"]


def test_the_context_stays_while_another_operation_of_the_intent_needs_it(sender: Sender) -> None:
    why = Intent("r", "s", "why", {"model": "a"})
    first, second = _saved(sender, "first", intent=why)[0], sender.enqueue_one("second", intent=why)
    sender.age(first, by=OLD)
    prune(sender.worker, older_than_s=DAY_S)
    assert sender.operation(first).arguments is None
    assert sender.scalar("select context from oncebox.intent") == {"model": "a"}
    call = sender.claim_one(second)
    sender.settle(call, saved(call))
    sender.age(second, by=OLD)
    prune(sender.worker, older_than_s=DAY_S)
    assert sender.scalar("select context from oncebox.intent") is None


def test_a_refused_operation_loses_its_problem_and_keeps_its_reason(sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.answer(sender.claim_one(id), Outcome.REFUSED, "too_large", problem={"detail": "No."})
    sender.answer(sender.claim_one(id), Outcome.SEALED)
    sender.age(id, by=OLD)
    assert prune(sender.worker, older_than_s=DAY_S) == Pruned(operations=1, calls=2)
    status = sender.status()
    assert (status.state, status.reason, status.problem) == (State.REFUSED, "too_large", None)
    assert "never be saved under this id: too_large" in status.say


def test_it_works_in_batches_and_tells_its_progress(sender: Sender) -> None:
    """F44."""
    ids = _saved(sender, *(f"note-{n}" for n in range(7)))
    sender.age(*ids, by=OLD)
    progress: list[int] = []
    assert prune(sender.worker, older_than_s=DAY_S, batch=3, progress=progress.append) == Pruned(7, 1)
    assert progress == [3, 6, 7]


def test_one_prune_at_a_time(sender: Sender) -> None:
    """F44: the second does nothing and says so; the lock does not outlive its holder."""
    (id,) = _saved(sender, "note-7")
    sender.age(id, by=OLD)
    with psycopg.connect(sender.url) as other:
        other.execute("select pg_advisory_lock(7070318)")
        assert prune(sender.worker, older_than_s=DAY_S) == Pruned(0, 0, busy=True)
    # A session that was closed lives on for a moment in the server.
    eventually(
        lambda: prune(sender.worker, older_than_s=DAY_S).operations == 1, timeout=10, what="the lock is free"
    )
    with psycopg.connect(sender.url) as other:
        assert other.execute("select pg_try_advisory_lock(7070318)").fetchone() == (True,)


def test_a_failing_progress_leaves_no_lock_behind(sender: Sender) -> None:
    (id,) = _saved(sender, "note-7")
    sender.age(id, by=OLD)

    def fail(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prune(sender.worker, older_than_s=DAY_S, progress=fail)
    assert prune(sender.worker, older_than_s=DAY_S).busy is False


def test_a_locked_row_is_left_for_the_next_time(sender: Sender) -> None:
    """Live traffic is not waited for."""
    locked, free = _saved(sender, "locked", "free")
    sender.age(locked, free, by=OLD)
    with psycopg.connect(sender.url) as holder:
        holder.execute("select from oncebox.operation where id = %s for update", [locked])
        assert prune(sender.worker, older_than_s=DAY_S).operations == 1
        holder.rollback()
    assert prune(sender.worker, older_than_s=DAY_S).operations == 1
