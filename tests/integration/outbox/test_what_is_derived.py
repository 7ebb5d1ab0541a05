"""What is read off the rows and the clock needs nobody to keep it right: ages, places in use, who is dead."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError

from oncebox_models.states import State
from oncebox_outbox import insights
from oncebox_outbox.insights import Lag
from oncebox_outbox.policy import Policy
from oncebox_outbox.pruning import prune
from oncebox_outbox.settling import park_poison, settle_unsent
from oncebox_outbox.statements import PARK_POISON, SETTLE_UNSENT
from tests.integration.outbox.scenes import Sender, saved, write
from tests.support.polling import eventually


def lag(sender: Sender) -> Lag:
    with sender.agent.connect() as connection:
        return insights.lag(connection)


def in_state(told: Lag, state: State) -> int:
    return sum(depth.entries for depth in told.depths if depth.state is state)


def test_a_prune_that_fails_freezes_no_number(sender: Sender) -> None:
    """F5: one operation two hours old, and the housekeeping broken: its age is told, and goes on rising."""
    (done,) = sender.enqueue(write("done"))
    call = sender.claim_one(done.id)
    sender.settle(call, saved(call))
    sender.age(done.id, by=timedelta(days=2))
    parked = sender.enqueue_one("parked")
    sender.change(
        "update oncebox.outbox_entry set enqueued_at = now() - interval '2 h', ready_at = now() + interval '1 h'"
        " where id = any(:ids)",
        [parked],
    )
    sender.change(
        "create function broken() returns trigger language plpgsql as $$ begin raise 'broken'; end $$", ()
    )
    sender.change(
        "create trigger broken before update of arguments on oncebox.operation execute function broken()", ()
    )
    first = lag(sender)
    with pytest.raises(DBAPIError, match="broken"):
        prune(sender.worker, older_than_s=86_400.0)
    second = lag(sender)
    assert (first.entries, second.entries) == (1, 1)
    assert 7_200 <= first.oldest_age_s < second.oldest_age_s < 7_300


def test_places_of_dead_workers_are_free_when_their_leases_are_over(sender: Sender) -> None:
    """F37: "in use" is a count of live leases and of nothing else, so that no crash can leave it too high; what they held
    is there to be claimed."""
    ids = [enqueued.id for enqueued in sender.enqueue(*(write(f"note-{n}") for n in range(6)))]
    sender.claim(*ids[:3], worker="dies")
    sender.claim(*ids[3:], worker="dies-too")
    busy = lag(sender)
    assert (in_state(busy, State.SENDING), busy.scale_target) == (6, 6)
    before = sender.everything()
    sender.lapse(*ids)
    free = lag(sender)
    assert (in_state(free, State.SENDING), in_state(free, State.UNKNOWN)) == (0, 6)
    assert free.scale_target == 6, "all of it is work for somebody"
    kept = {table for table, rows in sender.everything().items() if rows == before[table]}
    assert kept == set(before) - {"outbox_entry"}, "no other row counts places"
    assert len(sender.claim(*ids, worker="adopter").calls[0].operations) == 6


@contextmanager
def dies_in(sender: Sender, statement: str) -> Generator[None]:
    """A relay that has done its housekeeping, and whose commit never comes: it is gone when the block ends."""
    text = statement.replace(":limit", "10").replace(":poison_claims", "1")
    dying = psycopg.connect(sender.url, application_name="dies")
    dying.execute(text.encode())
    yield
    sender.change(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'dies'",
        (),
    )
    dying.close()


def test_a_rescuer_that_dies_in_the_middle_leaves_everything_to_the_next(sender: Sender) -> None:
    """F58: nobody's job is it alone: while one holds the rows the other goes on without them, and when it is gone, takes
    them."""
    expired, poison = sender.enqueue_one("expired"), sender.enqueue_one("poison")
    sender.expire(expired)
    sender.claim_one(poison)
    sender.lapse(poison)
    policy = Policy(poison_claims=1)
    with dies_in(sender, SETTLE_UNSENT.text):
        assert settle_unsent(sender.worker, limit=10) == []
    eventually(lambda: settle_unsent(sender.worker, limit=10) == [expired], what="another relay settles it")
    with dies_in(sender, PARK_POISON.text):
        assert park_poison(sender.worker, policy, limit=10) == []
    eventually(lambda: park_poison(sender.worker, policy, limit=10) == [poison], what="another parks it")


def test_an_outage_of_25_hours_expires_nothing(sender: Sender) -> None:
    """F56: what nobody could deliver for a day and an hour is as due as on the first; the default is 72 hours, and its end
    is a state, not a deletion."""
    id = sender.enqueue_one()
    for table, columns in (
        ("operation", ("created_at", "deadline")),
        ("outbox_entry", ("enqueued_at", "ready_at", "deadline")),
    ):
        moved = ", ".join(f"{column} = {column} - interval '25 h'" for column in columns)
        sender.change(f"update oncebox.{table} set {moved} where id = any(:ids)", [id])
    assert settle_unsent(sender.worker, limit=10) == []
    assert sender.status().state is State.PENDING
    assert lag(sender).oldest_age_s >= 25 * 3600
    assert sender.dispatched() == [id]
    call = sender.claim_one(id)
    sender.settle(call, saved(call))
    assert sender.status().state is State.SAVED


def test_claims_and_outcomes_change_rows_in_place(sender: Sender) -> None:
    """F43: none of the columns that change between enqueue and settle is indexed but the back-off's, and a page has room:
    a claim leaves no dead entry in any index, so that a snapshot which somebody holds cannot make them grow."""
    ids = [enqueued.id for enqueued in sender.enqueue(*(write(f"note-{n}") for n in range(200)))]
    # Each row once: room for a second version is there whatever an autovacuum's snapshot keeps at this moment.
    (call,) = sender.claim(*ids[:100]).calls
    assert len(call.operations) == 100
    assert len(sender.dispatched()) == 100
    sender.change("select pg_stat_force_next_flush()", ())
    updates, in_place = eventually(
        lambda: seen if (seen := _updates(sender))[0] >= 200 else None, what="the counts are there"
    ) or (0, 0)
    assert in_place >= updates * 0.75, f"{in_place} of {updates} in place"


def _updates(sender: Sender) -> tuple[int, int]:
    (row,) = sender.rows(
        "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'outbox_entry'"
    )
    return row.n_tup_upd, row.n_tup_hot_upd
