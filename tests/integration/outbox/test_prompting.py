"""Retry and reconcile by a person: due now, nothing spent, no lease touched, no truth changed."""

from typing import Any
from uuid import UUID

import psycopg
import pytest

from oncebox_models.outcomes import Outcome
from oncebox_models.states import CallKind, State
from oncebox_outbox import Outbox, prompting
from oncebox_outbox.policy import Policy
from oncebox_outbox.prompting import Prompted, Reconciled, Retried
from oncebox_outbox.settling import park_poison
from oncebox_outbox.status import OperationStatus
from tests.integration.outbox.scenes import POLICY, Sender, saved, write

LATER_S = 3600.0


def retry(sender: Sender, id: UUID) -> Retried:
    with sender.agent.begin() as connection:
        return prompting.retry(connection, id)


def reconcile(sender: Sender, **narrowed: Any) -> Reconciled:
    with sender.agent.begin() as connection:
        return prompting.reconcile(connection, **narrowed)


def unknown(sender: Sender, operation_id: str = "note-7", **more: Any) -> UUID:
    """An operation whose first call brought no verdict; the receiver is asked in an hour."""
    id = sender.enqueue_one(operation_id, **more)
    sender.answer(sender.claim_one(id), Outcome.UNKNOWN, "timeout", retry_after_s=LATER_S)
    return id


def access_lost(sender: Sender, operation_id: str) -> UUID:
    id = sender.enqueue_one(operation_id)
    for _ in range(POLICY.access_lost_after + 1):
        sender.answer(sender.claim_one(id), Outcome.UNAUTHENTICATED, "unauthenticated")
    sender.change(
        "update oncebox.outbox_entry set ready_at = now() + interval '1 h' where id = any(:ids)", [id]
    )
    return id


def said(status: OperationStatus) -> tuple[object, ...]:
    """All that is known of an operation but when it is due."""
    return (status.state, status.say, status.reason, status.attempts, status.unanswered, status.wanted)


COUNTS = ("claims", "attempts", "unanswered", "retries", "wanted", "review", "last_outcome", "deadline")


def test_a_retry_makes_a_back_off_due_now_and_spends_nothing(sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.answer(sender.claim_one(id), Outcome.NOT_EXECUTED, "rate_limited", retry_after_s=LATER_S)
    before, known = sender.live_entry(id), sender.status()
    assert sender.dispatched() == []
    assert retry(sender, id) == Retried(Prompted.DUE, CallKind.SEND)
    after = sender.live_entry(id)
    assert [getattr(after, name) for name in COUNTS] == [getattr(before, name) for name in COUNTS]
    assert said(sender.status()) == said(known)
    assert sender.dispatched() == [id]
    assert sender.claim_one(id).kind is CallKind.SEND


def test_a_retry_of_an_unknown_one_asks_first(sender: Sender) -> None:
    id = unknown(sender)
    assert retry(sender, id).next_call is CallKind.STATUS
    assert sender.claim_one(id).kind is CallKind.STATUS


def test_a_retry_past_the_deadline_only_seals(sender: Sender) -> None:
    id = unknown(sender)
    sender.expire(id)
    assert retry(sender, id).next_call is CallKind.SEAL


def test_a_retry_respects_a_lease(sender: Sender) -> None:
    id = sender.enqueue_one()
    call = sender.claim_one(id)
    before = sender.everything()
    assert retry(sender, id).did is Prompted.UNDER_WAY
    assert sender.everything() == before
    sender.settle(call, saved(call))
    assert sender.status().state is State.SAVED


def test_a_retry_of_a_settled_one_changes_nothing(sender: Sender) -> None:
    id = sender.enqueue_one()
    call = sender.claim_one(id)
    sender.settle(call, saved(call))
    before = sender.everything()
    assert retry(sender, id) == Retried(Prompted.SETTLED)
    assert sender.everything() == before


def test_a_retry_hands_over_again_what_the_broker_has(sender: Sender) -> None:
    """A lost message is not waited for, and a place in the queue is kept."""
    id = sender.enqueue_one()
    ready_at = sender.live_entry(id).ready_at
    assert sender.dispatched() == [id]
    assert sender.dispatched() == []
    retry(sender, id)
    assert sender.live_entry(id).ready_at == ready_at
    assert sender.dispatched() == [id]


def test_a_retry_says_what_it_waits_for(sender: Sender) -> None:
    first, second = sender.enqueue(write("a", ordering_key="k"), write("b", ordering_key="k"))
    assert [retry(sender, one.id).behind for one in (first, second)] == [False, True]
    sender.change("update oncebox.destination set capabilities = null, capabilities_seen_at = null", ())
    assert retry(sender, first.id).receiver_seen is False


def test_a_retry_wakes_the_relay_at_commit(sender: Sender) -> None:
    id = unknown(sender)
    with psycopg.connect(sender.url, autocommit=True) as relay:
        relay.execute("listen oncebox_ready")
        retry(sender, id)
        assert [notice.channel for notice in relay.notifies(timeout=10, stop_after=1)] == ["oncebox_ready"]


def test_reconcile_asks_about_all_that_are_unknown_or_lost_their_access_and_no_other(sender: Sender) -> None:
    first, second = unknown(sender, "a"), unknown(sender, "b")
    lost = access_lost(sender, "c")
    turned_away, pending = sender.enqueue_one("d"), sender.enqueue_one("e")
    sender.answer(sender.claim_one(turned_away), Outcome.NOT_EXECUTED, "busy", retry_after_s=LATER_S)
    before = {name: said(sender.status(name)) for name in "abcde"}
    untouched = [sender.live_entry(id) for id in (turned_away, pending)]
    assert reconcile(sender) == Reconciled(unknown=2, access_lost=1)
    assert {name: said(sender.status(name)) for name in "abcde"} == before
    assert [sender.live_entry(id) for id in (turned_away, pending)] == untouched
    assert set(sender.dispatched()) == {first, second, lost, pending}
    (call,) = sender.claim(first, second).calls
    assert call.kind is CallKind.STATUS


def test_reconcile_asks_where_a_resend_was_next(sender: Sender) -> None:
    """Not found, then turned away: an earlier packet may have arrived since."""
    id = unknown(sender)
    sender.make_due(id)
    sender.answer(sender.claim_one(id), Outcome.NOT_FOUND)
    sender.answer(sender.claim_one(id), Outcome.NOT_EXECUTED, "busy", retry_after_s=LATER_S)
    assert (sender.status().state, sender.live_entry(id).next_call) == (State.UNKNOWN, CallKind.SEND)
    assert reconcile(sender) == Reconciled(1, 0)
    assert sender.claim_one(id).kind is CallKind.STATUS


def test_reconcile_never_turns_a_given_up_one_back(sender: Sender) -> None:
    id = unknown(sender)
    sender.change(
        "update oncebox.outbox_entry set wanted = 'abandon', wanted_reason = 'cancelled', next_call = 'seal'",
        (),
    )
    assert reconcile(sender) == Reconciled(1, 0)
    assert sender.claim_one(id).kind is CallKind.SEAL


@pytest.mark.parametrize(
    ("narrowed", "asked"),
    [
        ({"destination": "notes"}, 2),
        ({"destination": "elsewhere"}, 0),
        ({"tenant": "demo"}, 2),
        ({"tenant": "acme"}, 0),
        ({"tenant": "demo", "principal": "analyst"}, 1),
        ({"principal": "researcher"}, 1),
    ],
)
def test_reconcile_is_narrowed_by_what_is_given(sender: Sender, narrowed: dict[str, str], asked: int) -> None:
    unknown(sender)
    (other,) = sender.enqueue(write(), outbox=Outbox("demo", "analyst"))
    sender.answer(sender.claim_one(other.id), Outcome.UNKNOWN)
    assert reconcile(sender, **narrowed).asked == asked


def test_reconcile_of_one_leaves_the_others(sender: Sender) -> None:
    first, second = unknown(sender, "a"), unknown(sender, "b")
    assert reconcile(sender, id=first).asked == 1
    assert sender.dispatched() == [first]
    assert reconcile(sender, id=second).asked == 1


def test_reconcile_leaves_a_lease_and_what_is_held_by_another(sender: Sender) -> None:
    """It waits for nobody: who holds an entry is asking, or settling it."""
    leased, locked = unknown(sender, "a"), unknown(sender, "b")
    sender.make_due(leased)
    sender.claim_one(leased)
    with psycopg.connect(sender.url) as holder:
        holder.execute("select from oncebox.outbox_entry where id = %s for update", [locked])
        before = sender.everything()
        assert reconcile(sender) == Reconciled(0, 0)
        assert sender.everything() == before


def test_reconcile_asks_about_a_lapsed_lease(sender: Sender) -> None:
    """Its worker died: unknown by the clock."""
    id = sender.enqueue_one()
    sender.claim_one(id)
    sender.lapse(id)
    assert reconcile(sender).unknown == 1
    assert sender.claim_one(id).kind is CallKind.STATUS


def test_neither_touches_what_is_set_aside(sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.claim_one(id)
    sender.lapse(id)
    park_poison(sender.worker, Policy(poison_claims=1), limit=1)
    before = sender.everything()
    assert (reconcile(sender).asked, retry(sender, id).did) == (0, Prompted.SETTLED)
    assert sender.everything() == before


def test_what_is_rolled_back_did_not_happen(sender: Sender) -> None:
    id = unknown(sender)
    before = sender.everything()
    with sender.agent.connect() as connection:
        prompting.retry(connection, id)
        prompting.reconcile(connection)
        connection.rollback()
    assert sender.everything() == before
