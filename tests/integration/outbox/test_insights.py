"""Lag: every live operation counts, by destination and state, with nobody alive; 0 when there is none."""

from datetime import timedelta
from uuid import UUID

from oncebox_models.outcomes import Outcome
from oncebox_models.states import State
from oncebox_outbox import insights
from oncebox_outbox.insights import Lag
from oncebox_outbox.policy import Policy
from oncebox_outbox.settling import park_poison
from tests.integration.outbox.scenes import Sender, saved, write


def _lag(sender: Sender) -> Lag:
    with sender.agent.connect() as connection:
        return insights.lag(connection)


def _enqueued_before(sender: Sender, id: UUID, age: timedelta) -> None:
    sender.change(
        "update oncebox.outbox_entry set enqueued_at = now() - cast(:age as interval) where id = any(:ids)",
        [id],
        age=age,
    )


def test_nothing_live_is_zero_and_still_told(sender: Sender) -> None:
    """F45: the number is always there."""
    lag = _lag(sender)
    assert (lag.entries, lag.oldest_age_s, lag.scale_target, lag.unknown) == (0, 0.0, 0, 0)
    assert (lag.depths, lag.destinations, lag.violations) == ((), ("notes",), {})


def test_every_live_state_counts(sender: Sender) -> None:
    """Invariant 10."""
    pending, sending, retrying, unknown, lapsed, refused, lost, finished, parked = (
        sender.enqueue_one(name) for name in ("pending", "sending", "retrying", "unknown", "lapsed", "refused", "lost", "finished", "parked")
    )  # fmt: skip
    assert pending
    sender.answer(sender.claim_one(retrying), Outcome.NOT_EXECUTED)
    sender.answer(sender.claim_one(unknown), Outcome.UNKNOWN)
    sender.answer(sender.claim_one(refused), Outcome.REFUSED)
    for _ in range(3):
        sender.answer(sender.claim_one(lost), Outcome.UNAUTHENTICATED)
    sender.settle(call := sender.claim_one(finished), saved(call))
    sender.claim_one(parked)
    sender.lapse(parked)
    park_poison(sender.worker, Policy(poison_claims=1), limit=1)
    sender.claim_one(sending)
    sender.claim_one(lapsed)
    sender.lapse(lapsed)
    lag = _lag(sender)
    assert {(depth.destination, depth.state): depth.entries for depth in lag.depths} == {
        ("notes", State.PENDING): 1,
        ("notes", State.SENDING): 1,
        ("notes", State.RETRYING): 2,
        ("notes", State.UNKNOWN): 2,
        ("notes", State.NEEDS_REVIEW): 1,
    }
    assert (lag.entries, lag.unknown) == (7, 2)


def test_what_is_in_back_off_counts_from_its_enqueue(sender: Sender) -> None:
    """F5, F6: one row, two hours old, dispatched, tried and put off for an hour, with no worker and no broker alive."""
    id = sender.enqueue_one()
    assert sender.dispatched() == [id]
    sender.answer(sender.claim_one(id), Outcome.NOT_EXECUTED, retry_after_s=3600.0)
    _enqueued_before(sender, id, timedelta(hours=2))
    lag = _lag(sender)
    assert lag.entries == 1
    assert 7200 <= lag.oldest_age_s < 7260
    assert lag.scale_target == 0, "nothing to do for a worker within the next seconds"


def test_the_age_goes_on_rising_by_the_clock_alone(sender: Sender) -> None:
    """F5."""
    sender.enqueue_one()
    with sender.agent.connect() as connection:
        first = insights.lag(connection).oldest_age_s
        assert insights.lag(connection).oldest_age_s > first, "also inside one transaction"


def test_the_age_is_that_of_the_oldest(sender: Sender) -> None:
    for name, hours in (("a", 1), ("b", 3), ("c", 2)):
        _enqueued_before(sender, sender.enqueue_one(name), timedelta(hours=hours))
    assert 3 * 3600 <= _lag(sender).oldest_age_s < 3 * 3600 + 60


def test_ready_leased_and_due_soon_make_the_scale_target(sender: Sender) -> None:
    """F45: leased ones too, so that nobody scales running work away."""
    _, leased, soon, later = (enqueued.id for enqueued in sender.enqueue(*(write(name) for name in "abcd")))
    sender.claim_one(leased)
    put_off = "update oncebox.outbox_entry set ready_at = now() + cast(:by as interval) where id = any(:ids)"
    sender.change(put_off, [leased], by=timedelta(hours=1))
    sender.change(put_off, [soon], by=timedelta(seconds=20))
    sender.change(put_off, [later], by=timedelta(hours=1))
    assert _lag(sender).scale_target == 3


def test_destinations_are_counted_apart(sender: Sender) -> None:
    first, _ = sender.enqueue(write("a"), write("b"))
    sender.change("insert into oncebox.destination (name) values ('archive')", ())
    sender.change("update oncebox.outbox_entry set destination = 'archive' where id = any(:ids)", [first.id])
    lag = _lag(sender)
    assert {depth.destination: depth.entries for depth in lag.depths} == {"archive": 1, "notes": 1}
    assert lag.destinations == ("archive", "notes")


def test_violations_are_counted_by_kind(sender: Sender) -> None:
    sender.answer(sender.claim_one(sender.enqueue_one()), Outcome.CONFLICT)
    assert _lag(sender).violations == {"argument_conflict": 1}


def test_no_operation_is_out_of_reach(sender: Sender) -> None:
    """F23: a live operation without an entry is found."""
    from oncebox_outbox import statements

    id = sender.enqueue_one()
    with sender.worker.connect() as connection:
        assert connection.execute(statements.ORPHANS, {"limit": 10}).all() == []
        sender.change("delete from oncebox.outbox_entry where id = any(:ids)", [id])
        assert [row.operation_id for row in connection.execute(statements.ORPHANS, {"limit": 10})] == [
            "note-7"
        ]
    assert sender.status().state is State.UNKNOWN, "nothing definite is said of it"
