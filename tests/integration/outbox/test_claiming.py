"""Dispatch and claim: who may take what, counted before anything is sent."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import sqlalchemy as sa

from oncebox_models.outcomes import Outcome
from oncebox_models.states import CallKind, Reason, State, Wanted
from oncebox_outbox.claiming import dispatch, undispatch
from oncebox_outbox.policy import Policy
from oncebox_outbox.settling import park_poison, settle_unsent
from tests.integration.outbox.scenes import OUTBOX, POLICY, Sender, saved, write


def test_a_claim_hands_out_the_frozen_bytes_under_a_lease(sender: Sender) -> None:
    """Invariant 2, R35: the arguments are those of the enqueue, byte for byte."""
    id = sender.enqueue_one(text="Ünï\u2028")
    call = sender.claim_one(id)
    (operation,) = call.operations
    row = sender.operation(id)
    assert (call.kind, call.destination) == (CallKind.SEND, "notes")
    assert (operation.outgoing.arguments, operation.outgoing.args_hash) == (row.arguments, row.args_hash)
    assert (operation.outgoing.operation_id, operation.outgoing.tenant, operation.outgoing.principal) == ("note-7", "demo", "researcher")  # fmt: skip
    assert operation.outgoing.deadline == row.deadline
    entry = sender.live_entry(id)
    assert (entry.call_id, entry.claims, entry.attempts, entry.unanswered) == (call.call_id, 1, 1, 1)
    left = sender.scalar("select extract(epoch from lease_until - now())::float8 from oncebox.outbox_entry")
    assert POLICY.lease_s - 5 < left <= POLICY.lease_s
    assert sender.status().state is State.SENDING


def test_what_is_unknown_stays_so_while_it_is_asked_for_sent_again_and_sealed(sender: Sender) -> None:
    """R46: another call under way takes no doubt away; `wait` and `lag` go on saying unknown."""
    id = sender.enqueue_one()
    sender.answer(sender.claim_one(id), Outcome.UNKNOWN, "timeout")
    asked = []
    for outcome in (Outcome.NOT_FOUND, Outcome.REFUSED, Outcome.UNKNOWN):
        sender.make_due(id)
        call = sender.claim_one(id)
        asked.append(call.kind)
        assert sender.status().state is State.UNKNOWN
        sender.answer(call, outcome)
        assert sender.status().state is State.UNKNOWN
    assert asked == [CallKind.STATUS, CallKind.SEND, CallKind.SEAL]


def test_the_row_tells_the_truth_before_anything_is_sent(sender: Sender) -> None:
    """Whatever happens to the worker now: the next call asks, and the attempt is counted."""
    id = sender.enqueue_one()
    sender.claim_one(id)
    assert sender.live_entry(id).next_call == CallKind.STATUS
    (call,) = sender.rows("select kind, destination, worker, operations, finished_at from oncebox.call")
    assert tuple(call) == ("send", "notes", "worker-1", 1, None)


def test_a_message_delivered_twice_is_claimed_once(sender: Sender) -> None:
    """F15, F21: the second delivery finds a live claim and does nothing."""
    id = sender.enqueue_one()
    sender.claim_one(id)
    assert sender.claim(id, worker="worker-2").calls == ()
    assert sender.live_entry(id).attempts == 1


def test_a_message_for_what_is_settled_does_nothing(sender: Sender) -> None:
    """Invariant 3."""
    id = sender.enqueue_one()
    call = sender.claim_one(id)
    sender.settle(call, saved(call))
    before = sender.everything()
    assert sender.claim(id).calls == ()
    assert sender.everything() == before


def test_many_workers_at_once_claim_each_entry_once(sender: Sender) -> None:
    ids = [enqueued.id for enqueued in sender.enqueue(*(write(f"note-{n}") for n in range(100)))]
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda n: sender.claim(*ids, worker=f"worker-{n}"), range(8)))
    claimed = [
        operation.outgoing.id for claim in claims for call in claim.calls for operation in call.operations
    ]
    assert sorted(claimed) == sorted(ids)


def test_a_claim_takes_at_most_what_the_message_names(sender: Sender) -> None:
    first = sender.enqueue_one("a")
    sender.enqueue_one("b")
    (call,) = sender.claim(first, first).calls
    assert [operation.outgoing.operation_id for operation in call.operations] == ["a"]


def test_what_is_not_due_another_destinations_or_of_an_unknown_kind_falls_out(sender: Sender) -> None:
    """F18, F19: an unknown kind waits for a worker that knows it; nothing is spent."""
    later, elsewhere, newer = (enqueued.id for enqueued in sender.enqueue(write("a"), write("b"), write("c")))
    sender.change(
        "update oncebox.outbox_entry set ready_at = now() + interval '1 h' where id = any(:ids)", [later]
    )
    sender.change(
        "update oncebox.outbox_entry set destination = 'elsewhere' where id = any(:ids)", [elsewhere]
    )
    sender.change("update oncebox.operation set kind = 'note.fold' where id = any(:ids)", [newer])
    assert sender.claim(later, elsewhere, newer).calls == ()
    assert {
        row.attempts + row.claims for row in sender.rows("select attempts, claims from oncebox.outbox_entry")
    } == {0}


def test_an_expired_lease_is_unknown_by_the_clock_alone(sender: Sender) -> None:
    """DESIGN 4, F28: no rescuer, no worker alive; the statement is the agent's own read."""
    id = sender.enqueue_one()
    sender.claim(id, policy=Policy(lease_s=0.001))
    status = sender.status()
    assert (status.state, status.attempts, status.unanswered) == (State.UNKNOWN, 1, 1)
    assert status.say.startswith("OUTCOME UNKNOWN: note-7 may or may not be saved")


def test_a_lapsed_lease_is_unknown_inside_a_transaction_that_began_before(sender: Sender) -> None:
    id = sender.enqueue_one()
    with sender.agent.connect() as connection:
        connection.execute(sa.text("select now()"))
        sender.claim(id, policy=Policy(lease_s=0.001))
        assert OUTBOX.status(connection, "note-7").state is State.UNKNOWN


def test_a_crash_between_claim_and_settle_costs_one_attempt_and_leads_to_a_question(sender: Sender) -> None:
    """F31: after the lease another worker asks; it does not send."""
    id = sender.enqueue_one()
    first = sender.claim_one(id)
    sender.lapse(id)
    claim = sender.claim(id, worker="worker-2")
    (second,) = claim.calls
    assert (second.kind, claim.lapsed) == (CallKind.STATUS, 1)
    assert second.call_id != first.call_id
    entry = sender.live_entry(id)
    assert (entry.attempts, entry.unanswered, entry.claims) == (1, 1, 2)
    (lapsed,) = sender.rows("select call_id, outcome, reason from oncebox.call_outcome")
    assert tuple(lapsed) == (first.call_id, "unknown", "lease_lapsed")


def test_every_send_counts_and_every_question_does_not(sender: Sender) -> None:
    """Invariant 8."""
    id = sender.enqueue_one()
    counts: list[tuple[CallKind, int, int]] = []
    for outcome in (
        Outcome.UNKNOWN,
        Outcome.NOT_FOUND,
        Outcome.NOT_EXECUTED,
        Outcome.UNKNOWN,
        Outcome.IN_PROGRESS,
    ):
        call = sender.claim_one(id)
        entry = sender.live_entry(id)
        counts.append((call.kind, entry.attempts, entry.unanswered))
        sender.answer(call, outcome)
    send, status = CallKind.SEND, CallKind.STATUS
    assert counts == [(send, 1, 1), (status, 1, 1), (send, 2, 2), (send, 3, 2), (status, 3, 2)]


def test_a_call_that_never_began_gives_its_attempt_back(sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.answer(sender.claim_one(id), Outcome.NOT_SENT, "connect_refused")
    entry = sender.live_entry(id)
    assert (entry.attempts, entry.unanswered, entry.claims, entry.call_id) == (0, 0, 0, None)
    status = sender.status()
    assert status.state is State.PENDING
    assert (
        status.say
        == "NOT SENT YET: note-7 is committed and waits to be delivered (last try: connect_refused)."
    )


def test_a_poison_suspect_is_claimed_alone(sender: Sender) -> None:
    """Invariant 12: its neighbours never pay."""
    suspect, neighbour = (enqueued.id for enqueued in sender.enqueue(write("suspect"), write("neighbour")))
    for _ in range(2):
        sender.claim(suspect)
        sender.lapse(suspect)
    (call,) = sender.claim(suspect, neighbour).calls
    assert [operation.outgoing.id for operation in call.operations] == [neighbour]
    due = {entry.id: entry.alone for entry in dispatch(sender.worker, POLICY, low_mark=None, limit=10)}
    assert due == {suspect: True}
    assert sender.claim_one(suspect).kind is CallKind.STATUS


def test_a_poison_operation_is_parked_after_its_claims(sender: Sender) -> None:
    """F13: counted on the operation at each claim, so that it grows although every worker dies."""
    id = sender.enqueue_one()
    for _ in range(POLICY.poison_claims):
        assert park_poison(sender.worker, POLICY, limit=10) == []
        sender.claim_one(id)
        assert park_poison(sender.worker, POLICY, limit=10) == [], "not while a lease is live"
        sender.lapse(id)
    assert sender.claim(id).calls == ()
    assert park_poison(sender.worker, POLICY, limit=10) == [id]
    status = sender.status()
    assert (status.state, status.reason, status.definite) == (State.NEEDS_REVIEW, "poison", False)
    assert status.say.startswith("OUTCOME UNKNOWN: note-7 needs review")
    assert sender.entry(id) is None
    outcomes = sender.rows("select reason from oncebox.call_outcome")
    assert [row.reason for row in outcomes] == ["lease_lapsed"] * POLICY.poison_claims
    assert park_poison(sender.worker, POLICY, limit=10) == []


def test_an_outcome_of_any_kind_clears_the_suspicion(sender: Sender) -> None:
    id = sender.enqueue_one()
    for _ in range(POLICY.poison_claims * 2):
        sender.claim_one(id)
        sender.lapse(id)
        sender.answer(sender.claim_one(id), Outcome.UNKNOWN, "timeout")
    assert park_poison(sender.worker, POLICY, limit=10) == []
    assert sender.live_entry(id).claims == 0


def test_a_parked_operation_that_proves_saved_is_saved(sender: Sender) -> None:
    id = sender.enqueue_one()
    call = sender.claim_one(id)
    sender.lapse(id)
    assert park_poison(sender.worker, Policy(poison_claims=1), limit=10) == [id]
    sender.settle(call, saved(call))
    assert sender.status().state is State.SAVED
    assert sender.violations() == []


def test_past_its_deadline_without_an_attempt_it_is_not_saved_at_once(sender: Sender) -> None:
    """Proof 4, F56: settled and counted, never silent; nobody has to be asked."""
    id = sender.enqueue_one()
    sender.expire(id)
    assert sender.claim(id).calls == ()
    assert settle_unsent(sender.worker, limit=10) == [id]
    status = sender.status()
    assert (status.state, status.reason, status.definite) == (State.NOT_SAVED, "expired", True)
    assert sender.entry(id) is None
    assert sender.rows("select from oncebox.call") == []


def test_what_may_have_been_sent_is_not_settled_by_its_deadline(sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.claim_one(id)
    sender.expire(id)
    assert settle_unsent(sender.worker, limit=10) == [], "while its lease is live"
    sender.lapse(id)
    assert settle_unsent(sender.worker, limit=10) == [], "nor when the worker died"
    assert sender.status().state is State.UNKNOWN


@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.NOT_EXECUTED])
def test_past_its_deadline_after_an_attempt_it_is_only_sealed(sender: Sender, outcome: Outcome) -> None:
    """DESIGN 4: never resent from then on, whatever comes back."""
    id = sender.enqueue_one()
    sender.answer(sender.claim_one(id), outcome)
    sender.expire(id)
    for answer in (
        Outcome.NOT_FOUND,
        Outcome.UNKNOWN,
        Outcome.NOT_EXECUTED,
        Outcome.IN_PROGRESS,
        Outcome.NOT_SENT,
    ):
        call = sender.claim_one(id)
        assert call.kind is CallKind.SEAL
        entry = sender.live_entry(id)
        assert (entry.wanted, entry.wanted_reason, entry.attempts) == (Wanted.ABANDON, "expired", 1)
        sender.answer(call, answer)
        sender.make_due(id)
    sender.answer(sender.claim_one(id), Outcome.SEALED)
    status = sender.status()
    assert (status.state, status.reason) == (State.NOT_SAVED, "expired")


def test_a_seal_that_finds_the_note_ends_as_saved(sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.answer(sender.claim_one(id), Outcome.UNKNOWN)
    sender.expire(id)
    call = sender.claim_one(id)
    sender.settle(call, saved(call))
    assert sender.status().state is State.SAVED


def test_a_receiver_that_was_never_seen_gets_nothing(sender: Sender) -> None:
    """Invariant 9: run, claim nothing."""
    id = sender.enqueue_one()
    sender.change("update oncebox.destination set capabilities = null, capabilities_seen_at = null", ())
    assert sender.dispatched() == []
    assert sender.claim(id).calls == ()


def test_dispatch_stamps_each_entry_once_oldest_first(sender: Sender) -> None:
    ids = [sender.enqueue_one(f"note-{n}") for n in range(5)]
    for position, id in enumerate(reversed(ids)):
        sender.change("update oncebox.outbox_entry set ready_at = now() - cast(:by as interval) where id = any(:ids)", [id], by=timedelta(minutes=5 - position))  # fmt: skip
    assert sender.dispatched(limit=2) == ids[::-1][:2]
    assert sender.dispatched(limit=10) == ids[::-1][2:]
    assert sender.dispatched() == []


def test_below_the_low_mark_nothing_is_looked_for(sender: Sender) -> None:
    old, new = sender.enqueue_one("old"), sender.enqueue_one("new")
    sender.change(
        "update oncebox.outbox_entry set ready_at = now() - interval '1 h' where id = any(:ids)", [old]
    )
    mark = sender.live_entry(new).ready_at
    assert sender.dispatched(low_mark=mark) == [new]
    assert sender.dispatched() == [old], "a full scan finds it"


def test_two_relays_at_once_share_the_entries(sender: Sender) -> None:
    ids = [enqueued.id for enqueued in sender.enqueue(*(write(f"note-{n}") for n in range(100)))]
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda _: sender.dispatched(limit=40), range(4)))
    assert sorted(id for some in taken for id in some) == sorted(ids)


def test_a_message_that_was_not_accepted_is_dispatched_again(sender: Sender) -> None:
    """F4: the stamp goes back; nothing was spent."""
    id = sender.enqueue_one()
    (due,) = dispatch(sender.worker, POLICY, low_mark=None, limit=10)
    assert undispatch(sender.worker, [id], due.dispatched_at) == 1
    assert undispatch(sender.worker, [id], due.dispatched_at) == 0
    assert sender.dispatched() == [id]
    assert sender.live_entry(id).attempts == 0


def test_a_stamp_that_another_relay_renewed_is_not_taken_back(sender: Sender) -> None:
    id = sender.enqueue_one()
    (due,) = dispatch(sender.worker, POLICY, low_mark=None, limit=10)
    sender.change(
        "update oncebox.outbox_entry set dispatched_at = now() + interval '1 s' where id = any(:ids)", [id]
    )
    assert undispatch(sender.worker, [id], due.dispatched_at) == 0
    assert sender.dispatched() == []


def test_an_old_stamp_counts_as_none(sender: Sender) -> None:
    """Invariant 11: the message may be lost; it is a hint only."""
    id = sender.enqueue_one()
    assert sender.dispatched() == [id]
    stamp = (
        "update oncebox.outbox_entry set dispatched_at = now() - cast(:by as interval) where id = any(:ids)"
    )
    sender.change(stamp, [id], by=timedelta(seconds=POLICY.redispatch_s - 5))
    assert sender.dispatched() == []
    sender.change(stamp, [id], by=timedelta(seconds=POLICY.redispatch_s + 1))
    assert sender.dispatched() == [id]


def test_what_is_leased_is_not_dispatched_until_its_lease_lapses(sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.claim_one(id)
    assert sender.dispatched() == []
    sender.lapse(id)
    assert sender.dispatched() == [id]


def test_dispatch_names_the_kind_of_the_next_call(sender: Sender) -> None:
    fresh, asked, given_up = (e.id for e in sender.enqueue(write("a"), write("b"), write("c")))
    sender.answer(sender.claim_one(asked), Outcome.UNKNOWN)
    sender.answer(sender.claim_one(given_up), Outcome.REFUSED)
    kinds = {due.id: due.kind for due in dispatch(sender.worker, POLICY, low_mark=None, limit=10)}
    assert kinds == {fresh: CallKind.SEND, asked: CallKind.STATUS, given_up: CallKind.SEAL}


def test_a_receiver_that_was_never_seen_is_said_to_be_why(sender: Sender) -> None:
    sender.enqueue_one()
    assert sender.status().reason is None

    sender.change("update oncebox.destination set capabilities = null, capabilities_seen_at = null", ())

    assert sender.status().reason == Reason.RECEIVER_NEVER_SEEN
