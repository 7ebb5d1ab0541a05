"""Only the proofs settle; every other answer chooses the next call. The table is exhaustive."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oncebox_models.outcomes import Answer, Outcome, Receipt
from oncebox_models.states import ARROWS, CallKind, Reason, State, Wanted
from oncebox_outbox.policy import Policy
from oncebox_outbox.rules import Again, Claimed, Settle, checked, next_step

HASH = "a" * 64
POLICY = Policy()
LATER_S = 2.0
"""The schedule's delay after two retries, with the longest jitter."""
SAID = "folder_not_writable"

# What a claim can hold: a seal is claimed for what is given up, everything else for what is to be delivered.
CLAIMABLE = (
    (CallKind.SEND, Wanted.DELIVER),
    (CallKind.STATUS, Wanted.DELIVER),
    (CallKind.SEAL, Wanted.ABANDON),
    (CallKind.SEAL, Wanted.REFUSE),
)
PROOFS = {Outcome.RECEIPT, Outcome.SEALED, Outcome.CONFLICT}
WHY = {Wanted.DELIVER: None, Wanted.ABANDON: "cancelled", Wanted.REFUSE: "too_large"}


def _longest() -> float:
    return 1.0


def _entry(kind: CallKind = CallKind.SEND, wanted: Wanted = Wanted.DELIVER) -> Claimed:
    return Claimed(
        HASH,
        wanted,
        WHY[wanted],
        attempts=3,
        unanswered=int(kind is CallKind.SEND),
        retries=2,
        last_outcome=None,
    )


def _answer(outcome: Outcome, reason: str = SAID) -> Answer:
    receipt = Receipt("note-7", HASH, {"id": "n"}) if outcome is Outcome.RECEIPT else None
    return Answer(outcome, reason, receipt)


def _deliver(next_call: CallKind, delay_s: float, *, verdict: bool = False, returned: bool = False) -> Again:
    return Again(next_call, delay_s, Wanted.DELIVER, None, verdict=verdict, returned=returned)


SETTLES = {
    (Outcome.RECEIPT, Wanted.DELIVER): Settle(State.SAVED, None),
    (Outcome.RECEIPT, Wanted.ABANDON): Settle(State.SAVED, None),
    (Outcome.RECEIPT, Wanted.REFUSE): Settle(State.SAVED, None),
    (Outcome.SEALED, Wanted.DELIVER): Settle(State.NOT_SAVED, "sealed_elsewhere"),
    (Outcome.SEALED, Wanted.ABANDON): Settle(State.NOT_SAVED, "cancelled"),
    (Outcome.SEALED, Wanted.REFUSE): Settle(State.REFUSED, "too_large"),
    (Outcome.CONFLICT, Wanted.DELIVER): Settle(State.REFUSED, Reason.ARGUMENT_CONFLICT, "argument_conflict"),
    (Outcome.CONFLICT, Wanted.ABANDON): Settle(State.REFUSED, Reason.ARGUMENT_CONFLICT, "argument_conflict"),
    (Outcome.CONFLICT, Wanted.REFUSE): Settle(State.REFUSED, Reason.ARGUMENT_CONFLICT, "argument_conflict"),
}
AFTER_A_SEND = {
    Outcome.REFUSED: Again(CallKind.SEAL, 0.0, Wanted.REFUSE, SAID, verdict=True),
    Outcome.GONE: Again(CallKind.SEAL, 0.0, Wanted.ABANDON, Reason.EXPIRED, verdict=True),
    Outcome.UNAUTHENTICATED: _deliver(CallKind.SEND, LATER_S, verdict=True),
    Outcome.NOT_EXECUTED: _deliver(CallKind.SEND, LATER_S, verdict=True),
    Outcome.NOT_SENT: _deliver(CallKind.SEND, LATER_S, verdict=True, returned=True),
    Outcome.NOT_FOUND: _deliver(CallKind.SEND, LATER_S),
    Outcome.IN_PROGRESS: _deliver(CallKind.STATUS, LATER_S),
    Outcome.UNKNOWN: _deliver(CallKind.STATUS, LATER_S),
}
AFTER_A_STATUS = {
    Outcome.REFUSED: _deliver(CallKind.STATUS, LATER_S),
    Outcome.GONE: Again(CallKind.SEAL, LATER_S, Wanted.ABANDON, Reason.EXPIRED),
    Outcome.UNAUTHENTICATED: _deliver(CallKind.STATUS, LATER_S),
    Outcome.NOT_EXECUTED: _deliver(CallKind.STATUS, LATER_S),
    Outcome.NOT_SENT: _deliver(CallKind.STATUS, LATER_S),
    Outcome.NOT_FOUND: _deliver(CallKind.SEND, 0.0),
    Outcome.IN_PROGRESS: _deliver(CallKind.STATUS, LATER_S),
    Outcome.UNKNOWN: _deliver(CallKind.STATUS, LATER_S),
}


def _expected(outcome: Outcome, kind: CallKind, wanted: Wanted) -> Settle | Again:
    if outcome in PROOFS:
        return SETTLES[outcome, wanted]
    match kind:
        case CallKind.SEND:
            return AFTER_A_SEND[outcome]
        case CallKind.STATUS:
            return AFTER_A_STATUS[outcome]
        case _:
            return Again(CallKind.SEAL, LATER_S, wanted, WHY[wanted])


@pytest.mark.parametrize(("kind", "wanted"), CLAIMABLE)
@pytest.mark.parametrize("outcome", Outcome)
def test_every_answer_has_its_next_step(outcome: Outcome, kind: CallKind, wanted: Wanted) -> None:
    step = next_step(_entry(kind, wanted), kind, _answer(outcome), POLICY, _longest)
    assert step == _expected(outcome, kind, wanted)


ENTRIES = st.builds(
    Claimed,
    st.just(HASH),
    st.sampled_from(Wanted),
    st.none(),
    attempts=st.integers(1, 100),
    unanswered=st.integers(0, 100),
    retries=st.integers(0, 100_000),
    last_outcome=st.none() | st.sampled_from(Outcome),
).map(
    lambda entry: replace(
        entry, wanted_reason=WHY[entry.wanted], unanswered=min(entry.unanswered, entry.attempts)
    )
)
ANSWERS = st.builds(
    Answer,
    st.sampled_from(Outcome),
    st.sampled_from([SAID, "timeout", "foreign_receipt", "lease_lapsed"]),
    retry_after_s=st.none() | st.floats(0, 86_400),
    http_status=st.none() | st.integers(100, 599),
)
POLICIES = st.builds(Policy, budget=st.integers(1, 50), access_lost_after=st.integers(1, 5))
JITTERS = st.floats(0, 1, exclude_max=True)
KINDS = st.sampled_from([CallKind.SEND, CallKind.STATUS, CallKind.SEAL])


# Every outcome in turn: drawn at random, some are met once in a hundred examples, or not at all.
@pytest.mark.parametrize("outcome", Outcome)
@settings(max_examples=25)
@given(ENTRIES, KINDS, ANSWERS, POLICIES, JITTERS)
def test_nothing_but_a_proof_settles(
    outcome: Outcome, entry: Claimed, kind: CallKind, answer: Answer, policy: Policy, jitter: float
) -> None:
    """Invariant 7, whatever the counts, the budget, the status code and the wording."""
    step = next_step(entry, kind, replace(answer, outcome=outcome), policy, lambda: jitter)
    assert isinstance(step, Settle) == (outcome in PROOFS)


@given(st.sampled_from(CLAIMABLE), ENTRIES, ANSWERS, POLICIES, JITTERS)
def test_every_step_is_a_row_that_the_constraints_admit(
    claimed: tuple[CallKind, Wanted], entry: Claimed, answer: Answer, policy: Policy, jitter: float
) -> None:
    kind, wanted = claimed
    entry = replace(entry, wanted=wanted, wanted_reason=WHY[wanted])
    step = next_step(entry, kind, answer, policy, lambda: jitter)
    if isinstance(step, Again):
        assert (step.wanted is Wanted.DELIVER) == (step.next_call is not CallKind.SEAL)
        assert (step.wanted is Wanted.DELIVER) == (step.wanted_reason is None)
        assert step.delay_s >= 0
        if kind is CallKind.SEND:  # the claim counted one of each; an attempt given back has its verdict
            assert step.returned <= step.verdict
        else:
            assert not step.returned
            assert not step.verdict
    else:
        assert (step.final is State.SAVED) == (step.reason is None)


@given(st.sampled_from(CLAIMABLE), ENTRIES, ANSWERS, POLICIES, JITTERS)
def test_every_step_is_an_arrow_out_of_sending(
    claimed: tuple[CallKind, Wanted], entry: Claimed, answer: Answer, policy: Policy, jitter: float
) -> None:
    kind, wanted = claimed
    send = kind is CallKind.SEND
    entry = replace(
        entry, wanted=wanted, wanted_reason=WHY[wanted], unanswered=max(entry.unanswered, int(send))
    )
    step = next_step(entry, kind, answer, policy, lambda: jitter)
    if isinstance(step, Settle):
        became = step.final
    elif step.access_lost:
        became = State.NEEDS_REVIEW
    elif entry.unanswered - step.verdict > 0:
        became = State.UNKNOWN
    else:
        became = State.RETRYING if entry.attempts - step.returned > 0 else State.PENDING
    # An earlier call without a verdict: unknown while this one is under way, too.
    was = State.UNKNOWN if entry.unanswered - send > 0 else State.SENDING
    assert became is was or (was, became) in {(arrow.source, arrow.target) for arrow in ARROWS}


@given(ENTRIES, ANSWERS, POLICIES, JITTERS)
def test_what_is_given_up_is_never_sent_again(
    entry: Claimed, answer: Answer, policy: Policy, jitter: float
) -> None:
    """Abandon and refuse are for ever: only seals follow, for the reason there was."""
    for wanted in (Wanted.ABANDON, Wanted.REFUSE):
        given_up = replace(entry, wanted=wanted, wanted_reason=WHY[wanted])
        step = next_step(given_up, CallKind.SEAL, answer, policy, lambda: jitter)
        if isinstance(step, Again):
            assert (step.next_call, step.wanted, step.wanted_reason) == (CallKind.SEAL, wanted, WHY[wanted])


@given(ENTRIES, ANSWERS, JITTERS)
def test_retry_after_is_never_undercut(entry: Claimed, answer: Answer, jitter: float) -> None:
    turned_away = replace(answer, outcome=Outcome.NOT_EXECUTED)
    step = next_step(entry, CallKind.SEND, turned_away, POLICY, lambda: jitter)
    assert isinstance(step, Again)
    assert step.delay_s >= (answer.retry_after_s or 0.0)


def _unknown_after(unanswered: int, kind: CallKind, outcome: Outcome) -> Settle | Again:
    entry = replace(_entry(kind), attempts=unanswered, unanswered=unanswered)
    return next_step(entry, kind, _answer(outcome, "timeout"), Policy(budget=5), _longest)


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (CallKind.SEND, Outcome.UNKNOWN),
        (CallKind.STATUS, Outcome.UNKNOWN),
        (CallKind.STATUS, Outcome.NOT_FOUND),
        (CallKind.SEND, Outcome.IN_PROGRESS),
    ],
)
def test_the_budget_of_calls_without_a_verdict_ends_the_sending(kind: CallKind, outcome: Outcome) -> None:
    within, spent = _unknown_after(4, kind, outcome), _unknown_after(5, kind, outcome)
    assert isinstance(within, Again)
    assert isinstance(spent, Again)
    assert within.wanted is Wanted.DELIVER
    assert (spent.wanted, spent.wanted_reason, spent.next_call) == (
        Wanted.ABANDON,
        "budget_spent",
        CallKind.SEAL,
    )


@pytest.mark.parametrize("outcome", [Outcome.NOT_EXECUTED, Outcome.NOT_SENT, Outcome.UNAUTHENTICATED])
def test_answers_that_say_not_executed_spend_no_budget(outcome: Outcome) -> None:
    """F25, F26: an outage of an hour changes nothing but the time; only the deadline bounds it."""
    entry = replace(_entry(), attempts=10_000, unanswered=1, retries=10_000)
    step = next_step(entry, CallKind.SEND, _answer(outcome), Policy(budget=1), _longest)
    assert isinstance(step, Again)
    assert (step.wanted, step.next_call, step.verdict) == (Wanted.DELIVER, CallKind.SEND, True)
    assert step.delay_s == POLICY.schedule.ceiling_s


def test_access_is_lost_when_the_token_is_not_accepted_again_and_again() -> None:
    for retries, before, lost in (
        (0, None, False),
        (1, "unauthenticated", False),
        (2, "unauthenticated", True),
        (2, "unknown", False),
    ):
        entry = replace(_entry(), retries=retries, last_outcome=before)
        step = next_step(
            entry, CallKind.SEND, _answer(Outcome.UNAUTHENTICATED), Policy(access_lost_after=3), _longest
        )
        assert isinstance(step, Again)
        assert (step.access_lost, step.next_call) == (lost, CallKind.SEND)


def test_a_foreign_receipt_is_unknown_and_a_violation() -> None:
    step = next_step(_entry(), CallKind.SEND, _answer(Outcome.UNKNOWN, "foreign_receipt"), POLICY, _longest)
    assert step == replace(_deliver(CallKind.STATUS, LATER_S), violation="foreign_receipt")


def test_a_receipt_with_our_key_and_hash_is_what_it_says() -> None:
    answer = _answer(Outcome.RECEIPT)
    assert checked(answer, "note-7", HASH) is answer


def test_a_receipt_for_another_key_is_discarded() -> None:
    """DESIGN 4: neither saved nor ended; a violation."""
    told = checked(_answer(Outcome.RECEIPT), "note-8", HASH)
    assert (told.outcome, told.reason, told.receipt) == (Outcome.UNKNOWN, "foreign_receipt", None)


def test_a_receipt_for_other_arguments_is_a_conflict() -> None:
    """Proof 3: the key is held for other arguments."""
    told = checked(_answer(Outcome.RECEIPT), "note-7", "b" * 64)
    assert (told.outcome, told.receipt) == (Outcome.CONFLICT, None)


def test_a_receipt_without_a_receipt_proves_nothing() -> None:
    told = checked(Answer(Outcome.RECEIPT, "created"), "note-7", HASH)
    assert (told.outcome, told.receipt) == (Outcome.UNKNOWN, None)


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - {Outcome.RECEIPT}))
def test_only_a_receipt_brings_a_receipt(outcome: Outcome) -> None:
    told = checked(Answer(outcome, "x", Receipt("note-7", HASH, {})), "note-7", HASH)
    assert (told.outcome, told.receipt) == (outcome, None)
