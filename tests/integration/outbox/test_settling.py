"""Settle: the four proofs, fencing, and what stale and doubled answers may do."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from oncebox_models.outcomes import Answer, Outcome, Receipt
from oncebox_models.states import CallKind, State, Wanted
from oncebox_outbox.claiming import Call
from oncebox_outbox.policy import Policy
from oncebox_outbox.settling import settle
from tests.integration.outbox.scenes import POLICY, Sender, all_answer, no_jitter, receipt_for, saved, write

NOT_A_RECEIPT = sorted(set(Outcome) - {Outcome.RECEIPT})


def test_a_receipt_settles_and_is_kept_byte_for_byte(sender: Sender) -> None:
    """Invariant 3: final, receipt and the end of the entry in one transaction."""
    id = sender.enqueue_one()
    call = sender.claim_one(id)
    settled = sender.settle(call, saved(call))
    assert (settled.finals, settled.again, settled.violations) == ({id: State.SAVED}, frozenset(), 0)
    assert len(settled.lags_s) == 1
    assert settled.lags_s[0] > 0
    row = sender.operation(id)
    assert (row.final, row.receipt, row.settled_call, row.reason) == (
        "saved",
        receipt_for(call).text,
        call.call_id,
        None,
    )
    assert sender.entry(id) is None
    assert sender.rows("select from oncebox.call_outcome") == [], (
        "a receipt at the first try needs no row of its own"
    )
    assert sender.scalar("select count(*) from oncebox.call where finished_at is not null") == 1
    status = sender.status()
    assert status.receipt == receipt_for(call)
    assert (
        status.say
        == "Saved: note-7 is note id-of-note-7 version 1 in folder 'drafts' at /v1/notes/id-of-note-7."
    )


class Died(Exception):
    """The worker's process is gone."""


def test_a_worker_that_dies_while_it_settles_leaves_all_of_it_or_nothing(sender: Sender) -> None:
    """Invariant 3: wherever it dies, the state, the receipt and the end of the entry are there together, or none is."""
    id = sender.enqueue_one()
    call = sender.claim_one(id)

    def die(*_: object) -> None:
        raise Died

    event.listen(sender.worker, "after_cursor_execute", die)
    with pytest.raises(Died):
        sender.settle(call, saved(call))
    event.remove(sender.worker, "after_cursor_execute", die)
    row, entry = sender.operation(id), sender.entry(id)
    together = (row.final, row.receipt is not None, entry is None)
    assert together in [(None, False, False), ("saved", True, True)]


@pytest.mark.parametrize("kind", [CallKind.STATUS, CallKind.SEAL])
def test_a_receipt_of_a_question_or_a_seal_settles_too(sender: Sender, kind: CallKind) -> None:
    id = sender.enqueue_one()
    sender.answer(sender.claim_one(id), Outcome.UNKNOWN if kind is CallKind.STATUS else Outcome.REFUSED)
    call = sender.claim_one(id)
    assert call.kind is kind
    sender.settle(call, saved(call))
    assert sender.status().state is State.SAVED


def test_settling_twice_changes_nothing(sender: Sender) -> None:
    """Invariant 3: a redelivered message, a retry after a lost connection."""
    ids = [sender.enqueue_one(f"note-{n}") for n in range(len(Outcome))]
    (call,) = sender.claim(*ids).calls
    outcomes = {
        operation.outgoing.id: outcome for operation, outcome in zip(call.operations, Outcome, strict=True)
    }
    answers = {
        id: saved(call)[id] if outcome is Outcome.RECEIPT else Answer(outcome, "foreign_receipt")
        for id, outcome in outcomes.items()
    }
    sender.settle(call, answers)
    before = sender.everything()
    again = sender.settle(call, answers)
    assert (again.finals, again.again) == ({}, frozenset())
    after = sender.everything()
    assert {table: after[table] for table in after if table != "call_outcome"} == {
        table: before[table] for table in before if table != "call_outcome"
    }
    # An outcome is rewritten with the same words; only its time is another.
    assert len(after["call_outcome"]) == len(before["call_outcome"])


def test_a_call_settles_its_operations_each_by_its_own_answer(sender: Sender) -> None:
    """By id, never by order."""
    a, b, c = (enqueued.id for enqueued in sender.enqueue(write("a"), write("b"), write("c")))
    (call,) = sender.claim(c, a, b).calls
    receipts = saved(call)
    settled = sender.settle(
        call, {c: receipts[c], a: Answer(Outcome.UNKNOWN, "timeout"), b: Answer(Outcome.SEALED, "x")}
    )
    assert settled.finals == {c: State.SAVED, b: State.NOT_SAVED}
    assert settled.again == {a}
    assert {name: sender.status(name).state for name in "abc"} == {
        "a": State.UNKNOWN, "b": State.NOT_SAVED, "c": State.SAVED,
    }  # fmt: skip


def test_a_refusal_is_sealed_and_then_refused_in_the_receivers_words(sender: Sender) -> None:
    """DESIGN 4: proof 2."""
    id = sender.enqueue_one()
    problem = {"detail": "No.", "permitted_folders": ["inbox"], "code": "folder_not_writable"}
    settled = sender.answer(
        sender.claim_one(id), Outcome.REFUSED, "folder_not_writable", problem=problem, http_status=403
    )
    assert (settled.finals, settled.again, settled.due_now) == ({}, {id}, {id})
    making = sender.status()
    assert (making.state, making.wanted, making.problem) == (State.RETRYING, Wanted.REFUSE, problem)
    call = sender.claim_one(id)
    assert call.kind is CallKind.SEAL
    assert "being made final" in sender.status().say, "also while the seal is on its way"
    sender.answer(call, Outcome.SEALED, "sealed")
    status = sender.status()
    assert (status.state, status.reason, status.problem) == (State.REFUSED, "folder_not_writable", problem)
    assert "Folders you may write to: inbox" in status.say


def test_a_key_held_for_other_arguments_is_refused_and_a_violation(sender: Sender) -> None:
    """Proof 3."""
    id = sender.enqueue_one()
    settled = sender.answer(sender.claim_one(id), Outcome.CONFLICT, "argument_conflict", http_status=422)
    assert (settled.finals, settled.violations) == ({id: State.REFUSED}, 1)
    assert sender.status().reason == "argument_conflict"
    assert sender.violations() == ["argument_conflict"]


@pytest.mark.parametrize(
    "outcome", [outcome for outcome in NOT_A_RECEIPT if outcome not in (Outcome.SEALED, Outcome.CONFLICT)]
)
def test_every_other_answer_leaves_it_live(sender: Sender, outcome: Outcome) -> None:
    """Invariant 7; each row satisfies the constraints."""
    id = sender.enqueue_one()
    settled = sender.answer(sender.claim_one(id), outcome)
    assert (settled.finals, settled.again) == ({}, {id})
    assert not sender.status().definite
    assert sender.live_entry(id).call_id is None


def test_a_back_off_is_counted_from_the_settling_by_the_databases_clock(sender: Sender) -> None:
    id = sender.enqueue_one()
    for retries, longest_s in enumerate((0.5, 1.0, 2.0)):
        call = sender.claim_one(id)
        settle(sender.worker, POLICY, call, all_answer(call, Outcome.NOT_EXECUTED), lambda: 1.0)
        entry = sender.live_entry(id)
        delay = sender.scalar(
            "select extract(epoch from ready_at - clock_timestamp())::float8 from oncebox.outbox_entry"
        )
        assert longest_s - 0.4 < delay <= longest_s
        assert entry.retries == retries + 1
        assert sender.claim(id).calls == (), "not before it is due"
        sender.make_due(id)


def test_retry_after_is_kept(sender: Sender) -> None:
    id = sender.enqueue_one()
    settled = sender.answer(sender.claim_one(id), Outcome.NOT_EXECUTED, "rate_limited", retry_after_s=90.0)
    assert settled.due_now == frozenset()
    assert sender.scalar("select ready_at > now() + interval '85 s' from oncebox.outbox_entry")


# Fencing: two workers, the first of which slept past its lease.


def _overtaken(sender: Sender) -> tuple[Call, Call]:
    """A zombie's call, and the one of the worker that took over."""
    id = sender.enqueue_one()
    zombie = sender.claim_one(id, worker="zombie")
    sender.lapse(id)
    return zombie, sender.claim_one(id, worker="adopter")


@pytest.mark.parametrize("outcome", NOT_A_RECEIPT)
def test_a_zombies_answer_does_not_touch_the_next_workers_lease(sender: Sender, outcome: Outcome) -> None:
    """F9, F10, R17, invariant 5: its `not_sent` would end the lease, its `sealed` the operation."""
    zombie, adopter = _overtaken(sender)
    (id,) = (operation.outgoing.id for operation in adopter.operations)
    before = sender.live_entry(id)
    settled = sender.answer(zombie, outcome, "late")
    assert (settled.finals, settled.again) == ({}, frozenset())
    assert sender.live_entry(id) == before
    assert sender.operation(id).final is None
    assert sender.status().state is State.UNKNOWN
    sender.settle(adopter, saved(adopter))
    assert sender.status().state is State.SAVED


@pytest.mark.parametrize("outcome", NOT_A_RECEIPT)
def test_a_zombies_answer_to_what_is_settled_changes_nothing(sender: Sender, outcome: Outcome) -> None:
    zombie, adopter = _overtaken(sender)
    sender.settle(adopter, saved(adopter))
    (id,) = (operation.outgoing.id for operation in adopter.operations)
    before = sender.operation(id)
    assert sender.answer(zombie, outcome, "late").finals == {}
    assert sender.operation(id) == before


def test_a_zombies_receipt_is_accepted(sender: Sender) -> None:
    """F31: the note exists, whoever says so; the adopter's answer then finds it settled."""
    zombie, adopter = _overtaken(sender)
    (id,) = (operation.outgoing.id for operation in adopter.operations)
    assert sender.settle(zombie, saved(zombie)).finals == {id: State.SAVED}
    assert sender.entry(id) is None
    for outcome in NOT_A_RECEIPT:
        assert sender.answer(adopter, outcome, "late").finals == {}
    assert sender.settle(adopter, saved(adopter)).finals == {}
    assert sender.status().state is State.SAVED
    assert sender.rows("select from oncebox.violation where kind <> 'argument_conflict'") == []


def test_the_answer_after_a_lapsed_lease_that_nobody_took_over_counts(sender: Sender) -> None:
    """It is still the live call: the token decides, not the time."""
    id = sender.enqueue_one()
    call = sender.claim_one(id)
    sender.lapse(id)
    sender.answer(call, Outcome.NOT_SENT, "connect_refused")
    assert sender.status().state is State.PENDING


def test_two_workers_settle_one_receipt_at_once(sender: Sender) -> None:
    zombie, adopter = _overtaken(sender)
    with ThreadPoolExecutor(2) as pool:
        settled = list(pool.map(lambda call: sender.settle(call, saved(call)), (zombie, adopter)))
    assert sorted(len(each.finals) for each in settled) == [0, 1]
    assert sender.status().state is State.SAVED
    assert sender.violations() == []


# Contradictions are kept as evidence.


def test_two_different_receipts_are_a_violation_and_the_first_stays(sender: Sender) -> None:
    zombie, adopter = _overtaken(sender)
    first = saved(adopter)
    sender.settle(adopter, first)
    settled = sender.settle(zombie, saved(zombie, version=2))
    assert (settled.finals, settled.again, settled.violations) == ({}, frozenset(), 1)
    assert sender.violations() == ["different_receipt"]
    (receipt,) = (answer.receipt for answer in first.values())
    assert sender.status().receipt == receipt
    sender.settle(zombie, saved(zombie, version=2))
    assert sender.violations() == ["different_receipt"], "told once"


def test_two_different_receipts_at_the_same_time_are_a_violation_too(sender: Sender) -> None:
    """The second waits for the first and must then see what it wrote."""
    zombie, adopter = _overtaken(sender)
    with sender.agent.connect() as first:
        first.execute(sa.text("select from oncebox.outbox_entry for update"))
        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(lambda: sender.settle(zombie, saved(zombie, version=2)))
            sender.wait_until_blocked("worker")
            _settle_in(first, adopter)
            first.commit()
            late.result(10)
    assert sender.status().state is State.SAVED
    assert sender.violations() == ["different_receipt"]


def test_a_receipt_at_the_same_time_as_a_seal_is_saved_and_a_violation(sender: Sender) -> None:
    zombie, adopter = _overtaken(sender)
    with sender.agent.connect() as first:
        first.execute(sa.text("select from oncebox.outbox_entry for update"))
        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(lambda: sender.settle(zombie, saved(zombie)))
            sender.wait_until_blocked("worker")
            first.execute(
                sa.text(
                    "update oncebox.operation set final = 'not_saved', reason = 'cancelled', settled_at = now()"
                )
            )
            first.execute(sa.text("delete from oncebox.outbox_entry"))
            first.commit()
            assert list(late.result(10).finals.values()) == [State.SAVED]
    assert sender.violations() == ["saved_after_not_saved"]
    assert adopter.operations


def _settle_in(connection: sa.Connection, call: Call) -> None:
    """What settle does with a receipt, inside a transaction that is still open."""
    (answer,) = saved(call).values()
    assert answer.receipt is not None
    connection.execute(
        sa.text(
            "update oncebox.operation set final = 'saved', receipt = :receipt, settled_at = now(), settled_call = :call"
        ),
        {"receipt": answer.receipt.text, "call": call.call_id},
    )
    connection.execute(sa.text("delete from oncebox.outbox_entry"))


@pytest.mark.parametrize(("wanted", "final"), [(Wanted.ABANDON, "not_saved"), (Wanted.REFUSE, "refused")])
def test_a_receipt_for_what_was_settled_as_not_saved_is_a_violation(
    sender: Sender, wanted: Wanted, final: str
) -> None:
    """The note exists, so it is saved; the broken promise is kept."""
    id = sender.enqueue_one()
    zombie = sender.claim_one(id, worker="zombie")
    sender.lapse(id)
    adopter = sender.claim_one(id)
    sender.answer(adopter, Outcome.GONE if wanted is Wanted.ABANDON else Outcome.CONFLICT)
    if wanted is Wanted.ABANDON:
        sender.answer(sender.claim_one(id), Outcome.SEALED)
    assert sender.operation(id).final == final
    sender.settle(zombie, saved(zombie))
    assert f"saved_after_{final}" in sender.violations()
    row = sender.operation(id)
    assert (row.final, row.reason, row.problem) == ("saved", None, None)


def test_a_receipt_for_another_key_neither_saves_nor_ends_it(sender: Sender) -> None:
    id = sender.enqueue_one()
    call = sender.claim_one(id)
    ours = receipt_for(call)
    theirs = Receipt("note-8", ours.args_hash, ours.note)
    settled = sender.settle(call, {id: Answer(Outcome.RECEIPT, "created", theirs)})
    assert (settled.finals, settled.again, settled.violations) == ({}, {id}, 1)
    assert sender.status().state is State.UNKNOWN
    assert sender.violations() == ["foreign_receipt"]


def test_a_receipt_for_other_arguments_is_a_conflict(sender: Sender) -> None:
    id = sender.enqueue_one()
    call = sender.claim_one(id)
    theirs = Receipt("note-7", "0" * 64, receipt_for(call).note)
    sender.settle(call, {id: Answer(Outcome.RECEIPT, "created", theirs)})
    assert sender.status().state is State.REFUSED
    assert sender.violations() == ["argument_conflict"]


def test_a_receipt_that_is_missing_proves_nothing_and_harms_no_neighbour(sender: Sender) -> None:
    a, b = (enqueued.id for enqueued in sender.enqueue(write("a"), write("b")))
    (call,) = sender.claim(a, b).calls
    sender.settle(call, saved(call) | {a: Answer(Outcome.RECEIPT, "created")})
    assert (sender.status("a").state, sender.status("b").state) == (State.UNKNOWN, State.SAVED)


# Access, budget.


def test_lost_access_is_said_and_goes_on_being_tried(sender: Sender) -> None:
    """Class A has no dead letters: needs_review, while the calls go on; a new token sets it free."""
    id = sender.enqueue_one()
    states: list[State] = []
    for _ in range(POLICY.access_lost_after):
        sender.answer(sender.claim_one(id), Outcome.UNAUTHENTICATED, "unauthenticated", http_status=401)
        states.append(sender.status().state)
    assert states == [State.RETRYING, State.RETRYING, State.NEEDS_REVIEW]
    status = sender.status()
    assert (status.reason, status.definite, status.attempts) == ("access_lost", False, 3)
    call = sender.claim_one(id)
    assert call.kind is CallKind.SEND
    assert sender.status().state is State.NEEDS_REVIEW, "also while it is tried"
    sender.answer(call, Outcome.NOT_SENT)
    assert sender.status().state is State.NEEDS_REVIEW, "what never began says nothing of our access"
    call = sender.claim_one(id)
    sender.settle(call, saved(call))
    assert sender.status().state is State.SAVED


@pytest.mark.parametrize(
    ("outcome", "state"), [(Outcome.NOT_EXECUTED, State.RETRYING), (Outcome.UNKNOWN, State.UNKNOWN)]
)
def test_any_answer_shows_that_access_is_back(sender: Sender, outcome: Outcome, state: State) -> None:
    id = sender.enqueue_one()
    for _ in range(3):
        sender.answer(sender.claim_one(id), Outcome.UNAUTHENTICATED)
    sender.answer(sender.claim_one(id), outcome)
    assert sender.status().state is state


def test_a_spent_budget_ends_the_sending_and_says_so(sender: Sender) -> None:
    policy = Policy(budget=3)
    id = sender.enqueue_one()
    for _ in range(policy.budget):
        sender.settle(call := sender.claim_one(id), all_answer(call, Outcome.UNKNOWN, "timeout"), policy)
        if sender.live_entry(id).wanted == Wanted.DELIVER:
            sender.settle(
                call := sender.claim_one(id), all_answer(call, Outcome.NOT_FOUND, "not_found"), policy
            )
    status = sender.status()
    assert (status.state, status.wanted, status.reason, status.attempts) == (
        State.UNKNOWN,
        Wanted.ABANDON,
        "budget_spent",
        3,
    )
    call = sender.claim_one(id)
    assert call.kind is CallKind.SEAL
    sender.answer(call, Outcome.SEALED)
    assert (sender.status().state, sender.status().reason) == (State.NOT_SAVED, "budget_spent")


def test_an_outage_spends_no_budget(sender: Sender) -> None:
    """F25, F26: bounded by the deadline alone."""
    policy = Policy(budget=1)
    id = sender.enqueue_one()
    for outcome in (Outcome.NOT_SENT, Outcome.NOT_EXECUTED, Outcome.NOT_SENT, Outcome.NOT_EXECUTED) * 5:
        sender.settle(call := sender.claim_one(id), all_answer(call, outcome), policy)
        assert sender.live_entry(id).wanted == Wanted.DELIVER
    assert (sender.status().state, sender.status().attempts) == (State.RETRYING, 10)


def test_after_an_unknown_it_asks_and_then_sends_under_the_same_key(sender: Sender) -> None:
    """F1, R45, R50: not found proves nothing; a resend with the same key is what is safe."""
    id = sender.enqueue_one()
    kinds: list[CallKind] = []
    keys: set[tuple[str, str]] = set()
    for outcome in (
        Outcome.UNKNOWN,
        Outcome.NOT_FOUND,
        Outcome.UNKNOWN,
        Outcome.IN_PROGRESS,
        Outcome.NOT_FOUND,
    ):
        call = sender.claim_one(id)
        kinds.append(call.kind)
        keys.add((call.operations[0].outgoing.operation_id, call.operations[0].outgoing.arguments))
        sender.answer(call, outcome)
        assert sender.status().state is State.UNKNOWN
    assert kinds == [CallKind.SEND, CallKind.STATUS, CallKind.SEND, CallKind.STATUS, CallKind.STATUS]
    assert len(keys) == 1


def test_an_unknown_id_in_a_call_is_nobodys(sender: Sender) -> None:
    id = sender.enqueue_one()
    call = sender.claim_one(id)
    stranger = Call(uuid4(), call.kind, call.destination, call.operations)
    settled = sender.answer(stranger, Outcome.NOT_SENT)
    assert (settled.finals, settled.again) == ({}, frozenset())
    assert sender.status().state is State.SENDING
    assert sender.rows("select * from oncebox.call_outcome") == []


def test_the_random_source_is_the_callers(sender: Sender) -> None:
    id = sender.enqueue_one()
    call = sender.claim_one(id)
    assert settle(sender.worker, POLICY, call, all_answer(call, Outcome.NOT_EXECUTED), no_jitter).due_now == {
        id
    }


def test_what_was_turned_away_together_comes_back_together(sender: Sender) -> None:
    """Jitter spreads calls, not the operations of one: they would come back as a call each."""
    ids = [sender.enqueue_one(f"note-{n}") for n in range(5)]
    (call,) = sender.claim(*ids).calls
    draws = iter((0.5, 0.1, 0.9))

    settle(sender.worker, POLICY, call, all_answer(call, Outcome.NOT_EXECUTED), lambda: next(draws))

    assert sender.scalar("select count(distinct ready_at) from oncebox.outbox_entry") == 1
    assert next(draws) == 0.1
