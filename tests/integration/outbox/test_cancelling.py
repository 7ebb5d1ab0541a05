"""Cancel: an end with proof before anything was sent; afterwards only a seal can end it."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.orm import Session

from oncebox_models.outcomes import Outcome
from oncebox_models.states import CallKind, State, Wanted
from oncebox_outbox import OperationNotFound, OperationStatus
from oncebox_outbox.cancelling import Cancelled, cancel
from oncebox_outbox.settling import settle_unsent
from tests.integration.outbox.scenes import LEVELS, OUTBOX, Sender, saved, write


def _cancel(sender: Sender) -> OperationStatus:
    with Session(sender.agent) as session, session.begin():
        return OUTBOX.cancel(session, "note-7")


@pytest.mark.parametrize("level", LEVELS)
def test_before_anything_was_sent_it_is_not_saved_at_once(sender: Sender, level: str) -> None:
    """Proof 4."""
    id = sender.enqueue_one()
    with Session(sender.agent.execution_options(isolation_level=level)) as session, session.begin():
        status = OUTBOX.cancel(session, "note-7")
    assert (status.state, status.reason, status.definite) == (State.NOT_SAVED, "cancelled", True)
    assert status.say.startswith("NOT SAVED: note-7 will never be saved: it was cancelled")
    assert sender.entry(id) is None
    assert sender.claim(id).calls == ()


def test_a_cancel_that_is_rolled_back_did_not_happen(sender: Sender) -> None:
    id = sender.enqueue_one()
    with Session(sender.agent) as session:
        OUTBOX.cancel(session, "note-7")
        session.rollback()
    assert sender.status().state is State.PENDING
    assert sender.claim(id).calls


def test_enqueue_and_cancel_in_one_transaction(sender: Sender) -> None:
    with Session(sender.agent) as session, session.begin():
        OUTBOX.enqueue(session, write())
        assert OUTBOX.cancel(session, "note-7").state is State.NOT_SAVED
    assert sender.scalar("select count(*) from oncebox.outbox_entry") == 0


def test_while_a_call_is_under_way_it_only_asks_for_the_seal(sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.claim_one(id)
    status = _cancel(sender)
    assert (status.state, status.wanted, status.definite) == (State.SENDING, Wanted.ABANDON, False)
    assert "being given up (it was cancelled)" in status.say
    assert sender.live_entry(id).call_id is not None, "the lease stays"


@pytest.mark.parametrize(
    "outcome",
    [Outcome.UNKNOWN, Outcome.NOT_EXECUTED, Outcome.REFUSED, Outcome.IN_PROGRESS, Outcome.UNAUTHENTICATED],
)
def test_a_cancel_during_a_call_wins_over_the_calls_wish_to_go_on(sender: Sender, outcome: Outcome) -> None:
    id = sender.enqueue_one()
    call = sender.claim_one(id)
    _cancel(sender)
    sender.answer(call, outcome)
    sender.make_due(id)
    seal = sender.claim_one(id)
    assert seal.kind is CallKind.SEAL
    sender.answer(seal, Outcome.SEALED)
    assert (sender.status().state, sender.status().reason) == (State.NOT_SAVED, "cancelled")


def test_a_cancel_during_a_call_that_brings_a_receipt_ends_as_saved(sender: Sender) -> None:
    """R22: the commit at the receiver is the only truth."""
    call = sender.claim_one(sender.enqueue_one())
    _cancel(sender)
    sender.settle(call, saved(call))
    assert sender.status().state is State.SAVED


def test_a_cancel_during_a_call_that_never_began_ends_without_a_call(sender: Sender) -> None:
    id = sender.enqueue_one()
    call = sender.claim_one(id)
    _cancel(sender)
    sender.answer(call, Outcome.NOT_SENT)
    status = sender.status()
    assert (status.state, status.wanted) == (State.PENDING, Wanted.ABANDON)
    assert "being given up" in status.say
    assert sender.claim(id).calls == ()
    assert settle_unsent(sender.worker, limit=10) == [id]
    assert (sender.status().state, sender.status().reason) == (State.NOT_SAVED, "cancelled")


def test_a_cancel_during_a_call_whose_worker_dies_ends_by_a_seal(sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.claim_one(id)
    _cancel(sender)
    sender.lapse(id)
    assert sender.status().state is State.UNKNOWN
    assert settle_unsent(sender.worker, limit=10) == []
    assert sender.claim_one(id).kind is CallKind.SEAL


def test_after_a_call_it_is_sealed_at_once(sender: Sender) -> None:
    """R22: a back-off is not waited for."""
    id = sender.enqueue_one()
    sender.answer(sender.claim_one(id), Outcome.NOT_EXECUTED, "rate_limited", retry_after_s=3600.0)
    assert _cancel(sender).state is State.RETRYING
    assert sender.dispatched() == [id]
    assert sender.claim_one(id).kind is CallKind.SEAL


def test_what_is_settled_or_given_up_is_left_as_it_is(sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.answer(sender.claim_one(id), Outcome.REFUSED, "too_large")
    with sender.agent.begin() as connection:
        assert cancel(connection, id) is Cancelled.NOTHING
    assert sender.status().wanted is Wanted.REFUSE
    sender.answer(sender.claim_one(id), Outcome.SEALED)
    before = sender.everything()
    assert _cancel(sender).state is State.REFUSED
    assert sender.everything() == before


def test_a_cancel_says_what_it_did(sender: Sender) -> None:
    unsent, sent = sender.enqueue_one("a"), sender.enqueue_one("b")
    sender.claim_one(sent)
    with sender.agent.begin() as connection:
        assert [cancel(connection, id) for id in (unsent, sent, sent)] == [
            Cancelled.SETTLED, Cancelled.SEALING, Cancelled.NOTHING,
        ]  # fmt: skip


def test_a_name_that_nobody_has_is_not_found(sender: Sender) -> None:
    with pytest.raises(OperationNotFound, match="no operation 'note-7'; list them with: oncebox list"):
        _cancel(sender)


def test_a_claim_that_waits_for_a_cancel_finds_nothing(sender: Sender) -> None:
    id = sender.enqueue_one()
    with sender.agent.connect() as canceller:
        OUTBOX.cancel(canceller, "note-7")
        assert sender.claim(id).calls == (), "a locked entry is skipped"
        canceller.commit()
    assert sender.claim(id).calls == ()


def test_a_cancel_that_waits_for_a_claim_sees_that_something_was_sent(sender: Sender) -> None:
    """Judged on the row as it is after the wait: else a note could follow a definite "not saved"."""
    id = sender.enqueue_one()
    with sender.agent.connect() as holder:
        holder.exec_driver_sql(
            "update oncebox.outbox_entry set attempts = 1, unanswered = 1, claims = 1, next_call = 'status',"
            " call_id = gen_random_uuid(), calling = 'send', lease_until = now() + interval '45 s'"
        )
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(_cancel, sender)
            sender.wait_until_blocked("agent")
            holder.commit()
            status = waiting.result(10)
    assert (status.state, status.wanted) == (State.SENDING, Wanted.ABANDON)
    assert sender.live_entry(id).next_call == CallKind.SEAL
