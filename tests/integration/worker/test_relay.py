"""The relay against a real database and a real RabbitMQ: what it hands over, when, and in which order."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy.orm import Session

from oncebox_models.states import State
from oncebox_worker.relay import Pass
from tests.integration.worker.parties import OUTBOX, Sender, write
from tests.support.polling import eventually


def test_a_pass_hands_over_what_is_due_and_returns_counts(seen: Sender) -> None:
    """Chunks of at most `chunk` ids; the entries carry the stamp that the messages name."""
    ids = seen.enqueue_named(*(f"note-{number}" for number in range(5)))
    with seen.relay(chunk=2) as relay:
        assert relay.run_once() == Pass(published=5)
        assert relay.run_once() == Pass()
    assert seen.stamped() == set(ids)
    chunks = seen.taken_ids()
    assert sorted(len(chunk) for chunk in chunks) == [1, 2, 2]
    assert {id for chunk in chunks for id in chunk} == set(ids)


def test_a_message_holds_ids_and_no_text(seen: Sender) -> None:
    """The broker learns nothing of a note: neither text, title, folder nor who wants it."""
    seen.enqueue_named("note-7")
    with seen.relay() as relay:
        relay.run_once()
    (message,) = seen.take()
    everything = repr((message.body, message.headers, message.properties))
    for secret in ("canary", "Finding", "drafts", "researcher", "note-7"):
        assert secret not in everything


def test_the_oldest_go_first(seen: Sender) -> None:
    """With more due than one pass takes, the order is that of the enqueues."""
    ids = [seen.enqueue_named(f"note-{number}")[0] for number in range(7)]
    with seen.relay(pass_limit=3) as relay:
        passes = [relay.run_once() for _ in range(4)]
    assert passes == [Pass(published=3, full=True), Pass(published=3, full=True), Pass(published=1), Pass()]
    assert [id for chunk in seen.taken_ids() for id in chunk] == ids


def test_an_entry_of_a_slow_transaction_is_found_though_the_relay_was_past_it(seen: Sender) -> None:
    """F33: it began first and commits last, while each pass of the relay is full: the mark does not hide it."""
    with Session(seen.agent) as slow, slow.begin():
        late = OUTBOX.enqueue(slow, write("late")).id
        slow.flush()
        seen.enqueue_named("first", "second")
        with seen.relay(pass_limit=1) as relay:
            assert relay.run_once() == Pass(published=1, full=True)
            slow.commit()
            for number in range(10_000):
                seen.enqueue_named(f"more-{number}")
                assert relay.run_once().full
                if late in seen.stamped():
                    return
    raise AssertionError("always something newer went first")


def test_two_relays_at_once_hand_over_each_entry_once(seen: Sender) -> None:
    """There is no leader, and within `redispatch_s` no entry is published twice."""
    ids = seen.enqueue_named(*(f"note-{number}" for number in range(400)))
    start = threading.Barrier(2)

    def work() -> None:
        with seen.relay(chunk=7, pass_limit=20) as relay:
            relay.run_once()
            start.wait(20)
            while relay.run_once().published:
                pass

    relays = [threading.Thread(target=work) for _ in range(2)]
    for relay in relays:
        relay.start()
    for relay in relays:
        relay.join(30)
    published = [id for chunk in seen.taken_ids() for id in chunk]
    assert sorted(published) == sorted(ids)


def test_a_lost_message_is_sent_again_once_its_stamp_is_old(seen: Sender) -> None:
    """Invariant 11: the broker forgot it; before `redispatch_s` nobody asks, after it the entry goes out again."""
    (id,) = seen.enqueue_named("note-7")
    with seen.relay(redispatch_s=30) as relay:
        assert relay.run_once().published == 1
        assert seen.taken_ids() == [[id]]
        assert relay.run_once() == Pass()
        seen.change("update oncebox.outbox_entry set dispatched_at = dispatched_at - interval '31 s'")
        assert relay.run_once().published == 1
    assert seen.taken_ids() == [[id]]
    assert seen.attempts() == 0


def test_a_full_queue_holds_the_relay_back(seen: Sender) -> None:
    """Hints need not pile up: above `queue_limit` nothing is stamped, and with room again it goes on."""
    seen.enqueue_named("a", "b", "c")
    with seen.relay(chunk=1, pass_limit=2, queue_limit=2) as relay:
        assert relay.run_once() == Pass(published=2, full=True)
        assert relay.run_once() == Pass()
        assert len(seen.stamped()) == 2
        seen.take()
        assert relay.run_once() == Pass(published=1)


def test_what_is_leased_or_not_due_stays(seen: Sender) -> None:
    """A live lease and a back-off are respected; a lapsed lease is due."""
    leased, later, lapsed = seen.enqueue_named("leased", "later", "lapsed")
    lease = "update oncebox.outbox_entry set call_id = gen_random_uuid(), calling = 'send', lease_until = now() + :by where id = :id"
    seen.change(lease, id=leased, by=timedelta(hours=1))
    seen.change(lease, id=lapsed, by=timedelta(seconds=-1))
    seen.change("update oncebox.outbox_entry set ready_at = now() + interval '1 h' where id = :id", id=later)
    with seen.relay() as relay:
        assert relay.run_once().published == 1
    assert seen.taken_ids() == [[lapsed]]


def test_an_entry_claimed_twice_without_an_outcome_travels_alone(seen: Sender) -> None:
    """F13: it may be what ends the workers; its neighbours must not pay."""
    first, suspect, second, other = seen.enqueue_named("first", "suspect", "second", "other")
    seen.change("update oncebox.outbox_entry set claims = 2 where id = any(:ids)", ids=[suspect, other])
    with seen.relay() as relay:
        assert relay.run_once().published == 4
    assert sorted(seen.taken_ids()) == sorted([[first, second], [suspect], [other]])


def test_different_calls_and_destinations_do_not_share_a_message(seen: Sender) -> None:
    """What is to be sent, asked and sealed travels apart: each is one request of its own."""
    send, ask = seen.enqueue_named("send", "ask")
    seen.change("update oncebox.outbox_entry set attempts = 1, next_call = 'status' where id = :id", id=ask)
    with seen.relay() as relay:
        assert relay.run_once().published == 2
    assert sorted(seen.taken_ids()) == sorted([[send], [ask]])


def test_nothing_is_handed_over_to_a_receiver_that_was_never_seen(sender: Sender) -> None:
    """Invariant 9: what it admits is not known, so nothing leaves; once it was seen, everything does."""
    sender.enqueue_named("note-7")
    with sender.relay() as relay:
        assert relay.run_once() == Pass()
        assert sender.stamped() == set()
        sender.see_receiver()
        assert relay.run_once() == Pass(published=1)


def test_what_expired_unsent_is_settled_by_the_relay(seen: Sender) -> None:
    """F56: an expired operation that was never sent ends as not saved, is counted, and is not handed over."""
    (id,) = seen.enqueue_named("note-7")
    for table in ("operation", "outbox_entry"):
        seen.change(f"update oncebox.{table} set deadline = now() - interval '1 s' where id = :id", id=id)
    with seen.relay() as relay:
        assert relay.run_once() == Pass(unsent=1)
    status = seen.status("note-7")
    assert (status.state, status.reason) == (State.NOT_SAVED, "expired")
    assert seen.messages() == 0


def test_poison_is_parked_by_the_relay(seen: Sender) -> None:
    """F13: claimed five times without an outcome: kept for a person, never handed over again."""
    seen.enqueue_named("note-7", "note-8")
    seen.change(
        "update oncebox.outbox_entry set claims = 5, attempts = 5, unanswered = 5, next_call = 'status' where id ="
        " (select id from oncebox.operation where operation_id = 'note-7')"
    )
    with seen.relay() as relay:
        assert relay.run_once() == Pass(published=1, parked=1)
    status = seen.status("note-7")
    assert (status.state, status.reason) == (State.NEEDS_REVIEW, "poison")


def test_a_commit_wakes_the_relay(seen: Sender) -> None:
    """The relay sleeps for up to half a minute here; a commit is handed over long before."""
    with seen.running_relay(idle_poll_s=30):
        wait_for_sleeping_relay(seen)
        (id,) = seen.enqueue_named("note-7")
        eventually(lambda: id in seen.stamped(), timeout=5, what="the relay was woken")


def test_a_lost_wake_up_costs_one_idle_poll(seen: Sender) -> None:
    """The word of a commit may be lost; the poll finds the entry."""
    seen.change("alter table oncebox.outbox_entry disable trigger wake_relay")
    with seen.running_relay(idle_poll_s=0.3):
        wait_for_sleeping_relay(seen)
        (id,) = seen.enqueue_named("note-7")
        eventually(lambda: id in seen.stamped(), timeout=5, what="the relay looked by itself")


def test_a_burst_of_commits_at_once_is_handed_over(seen: Sender) -> None:
    """F41: wake-ups are coalesced: of commits at the same time most stay silent, and all are found within a poll."""

    def commit(agent: int) -> list[UUID]:
        return [seen.enqueue_named(f"note-{agent}-{number}")[0] for number in range(10)]

    with seen.running_relay(), ThreadPoolExecutor(8) as agents:
        ids = {id for found in agents.map(commit, range(8)) for id in found}
        eventually(lambda: seen.stamped() == ids, timeout=5, what="all are handed over")


def test_the_relay_outlives_its_database_connections(seen: Sender) -> None:
    """F51: its connections were ended; it makes new ones, the one that listens too."""
    with seen.running_relay(idle_poll_s=30) as alive:
        wait_for_sleeping_relay(seen)
        assert seen.end_connections("oncebox relay") >= 2
        wait_for_sleeping_relay(seen)
        (id,) = seen.enqueue_named("note-7")
        eventually(lambda: id in seen.stamped(), timeout=5, what="the relay goes on")
        alive()


def test_the_relay_waits_out_a_database_that_became_read_only(
    seen: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    """F51: after a fail-over its connections are read-only; it drops them, backs off, and recovers."""
    caplog.set_level("WARNING", "oncebox_worker")
    read_only = "alter database {} set default_transaction_read_only = {}"
    database = str(seen.scalar("select current_database()"))
    with seen.running_relay(idle_poll_s=0.2) as alive:
        wait_for_sleeping_relay(seen)
        (id,) = seen.enqueue_named("note-7")
        eventually(lambda: id in seen.stamped(), what="it works")
        seen.change(read_only.format(database, "on"))
        seen.end_connections("oncebox relay")
        eventually(lambda: "read-only transaction" in said(caplog), timeout=5, what="the relay met a standby")
        seen.change(read_only.format(database, "off"))
        seen.change("update oncebox.outbox_entry set dispatched_at = null")
        eventually(lambda: id in seen.stamped(), timeout=15, what="the relay recovered")
        alive()


def wait_for_sleeping_relay(sender: Sender) -> None:
    """Until the relay listens and has nothing left to look at."""
    eventually(
        lambda: (
            sender.scalar(
                "select exists (select from pg_stat_activity where datname = current_database()"
                " and application_name = 'oncebox relay wake-up' and query like 'listen%'"
                " and state_change < clock_timestamp() - interval '0.2 s')"
            )
            and sender.scalar(
                "select coalesce(max(state_change), now()) < clock_timestamp() - interval '0.15 s' from pg_stat_activity"
                " where datname = current_database() and application_name = 'oncebox relay'"
            )
        ),
        what="the relay sleeps",
    )


def said(caplog: pytest.LogCaptureFixture) -> str:
    """The fields of all that was logged so far."""
    return "\n".join(repr(getattr(record, "fields", {})) for record in caplog.records)
