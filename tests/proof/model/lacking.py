"""What each party would do without one of its rules: the functions that `rules.py` puts in the place of the right ones."""

from collections.abc import Callable
from dataclasses import replace

from oncebox_models.outcomes import Answer, Outcome
from oncebox_models.states import CallKind, Reason, State, Wanted
from oncebox_outbox import rules as product
from oncebox_outbox.policy import Policy
from oncebox_outbox.rules import Again, Claimed, Settle
from tests.proof.model import rows, wire
from tests.proof.model.rows import ClaimedRow, Lease, Row, ended, stored
from tests.proof.model.sender import Protocol
from tests.proof.model.wire import Reply


def deciding(
    change: Callable[[Claimed, CallKind, Answer, Settle | Again], Settle | Again],
) -> Callable[[Protocol], Protocol]:
    """A protocol whose decision is changed after the product's own rules have made it."""

    def next_step(
        entry: Claimed, kind: CallKind, answer: Answer, policy: Policy, random: Callable[[], float]
    ) -> Settle | Again:
        return change(entry, kind, answer, product.next_step(entry, kind, answer, policy, random))

    return lambda protocol: replace(protocol, next_step=next_step)


def receiving(**switches: bool) -> Callable[[Protocol], Protocol]:
    return lambda protocol: replace(protocol, receiver=replace(protocol.receiver, **switches))


# Only the proofs settle.


def settles(outcome: Outcome, final: State) -> Callable[[Protocol], Protocol]:
    def change(entry: Claimed, kind: CallKind, answer: Answer, step: Settle | Again) -> Settle | Again:
        return Settle(final, answer.reason) if answer.outcome is outcome else step

    return deciding(change)


def spent_budget_settles(
    entry: Claimed, kind: CallKind, answer: Answer, step: Settle | Again
) -> Settle | Again:
    if isinstance(step, Again) and step.wanted_reason == Reason.BUDGET_SPENT:
        return Settle(State.NOT_SAVED, Reason.BUDGET_SPENT)
    return step


def deadline_settles(row: Row, *, late: bool) -> Row | None:
    if row.final is None and late and row.lease is not Lease.LIVE:
        return ended(State.NOT_SAVED, Reason.EXPIRED)
    return rows.settle_unsent(row, late=late)


def cancel_settles(row: Row) -> Row | None:
    if row.final is None and row.lease is not Lease.LIVE:
        return ended(State.NOT_SAVED, Reason.CANCELLED)
    return rows.cancel(row)


def believed(answer: Answer, _operation_id: str, _args_hash: str) -> Answer:
    return answer


def reads_any_receipt(kind: CallKind, reply: Reply) -> Answer:
    taken_for_ours = (Reply.FOREIGN, Reply.OTHER_ARGUMENTS)
    return wire.answer(kind, Reply.RECEIPT if reply in taken_for_ours else reply)


# What a call counts, and who may write.


def returns_any(entry: Claimed, kind: CallKind, answer: Answer, step: Settle | Again) -> Settle | Again:
    if isinstance(step, Again) and answer.outcome is Outcome.NOT_SENT:
        return replace(step, returned=True, verdict=True)
    return step


def verdict_of_any(entry: Claimed, kind: CallKind, answer: Answer, step: Settle | Again) -> Settle | Again:
    if isinstance(step, Again) and answer.outcome in (Outcome.NOT_EXECUTED, Outcome.UNAUTHENTICATED):
        return replace(step, verdict=True)
    return step


def settle_from_any_call(row: Row, call: str, answer: Answer, step: Settle | Again) -> Row | None:
    return rows.settle(replace(row, call=call), call, answer, step)


def settle_from_the_live_call_only(row: Row, call: str, answer: Answer, step: Settle | Again) -> Row | None:
    return rows.settle(row, call, answer, step) if row.call == call else None


def claim_without_counting(row: Row, call: str, policy: Policy, *, late: bool) -> ClaimedRow | None:
    claimed = rows.claim(row, call, policy, late=late)
    if claimed is None:
        return None
    return replace(claimed, row=replace(claimed.row, attempts=row.attempts, unanswered=row.unanswered))


def settle_and_count(row: Row, call: str, answer: Answer, step: Settle | Again) -> Row | None:
    sent = int(row.calling is CallKind.SEND)
    counted = replace(row, attempts=row.attempts + sent, unanswered=row.unanswered + sent)
    return rows.settle(counted, call, answer, step)


def claim_under_a_lease(row: Row, call: str, policy: Policy, *, late: bool) -> ClaimedRow | None:
    lease = Lease.LAPSED if row.lease is Lease.LIVE else row.lease
    return rows.claim(replace(row, lease=lease), call, policy, late=late)


def lapsed_reads_as_never_sent(row: Row) -> State:
    own = int(row.calling is CallKind.SEND)
    return rows.state(replace(row, unanswered=row.unanswered - own, call=None, calling=None))


def park_under_a_lease(row: Row, policy: Policy) -> Row | None:
    lease = Lease.LAPSED if row.lease is Lease.LIVE else row.lease
    return rows.park_poison(replace(row, lease=lease), policy)


def settle_takes_a_cancel_back(row: Row, call: str, answer: Answer, step: Settle | Again) -> Row | None:
    settled = rows.settle(row, call, answer, step)
    if settled is None or settled.final is not None or isinstance(step, Settle):
        return settled
    return stored(
        replace(settled, wanted=step.wanted, wanted_reason=step.wanted_reason, next_call=step.next_call)
    )


def what_is_asked_reads_as_sending(row: Row) -> State:
    if row.final is None and row.review is None and row.lease is Lease.LIVE:
        return State.SENDING
    return rows.state(row)


def cancel_under_a_lease(row: Row) -> Row | None:
    unsent = row.final is None and row.attempts == 0
    return ended(State.NOT_SAVED, Reason.CANCELLED) if unsent else rows.cancel(row)


def settle_unsent_under_a_lease(row: Row, *, late: bool) -> Row | None:
    lease = Lease.LAPSED if row.lease is Lease.LIVE else row.lease
    return rows.settle_unsent(replace(row, lease=lease), late=late)


# What comes next.


def gone_is_still_wanted(
    entry: Claimed, kind: CallKind, answer: Answer, step: Settle | Again
) -> Settle | Again:
    if isinstance(step, Again) and answer.outcome is Outcome.GONE:
        return replace(step, wanted=Wanted.DELIVER, wanted_reason=None)
    return step


def claim_to_send_again(row: Row, call: str, policy: Policy, *, late: bool) -> ClaimedRow | None:
    claimed = rows.claim(row, call, policy, late=late)
    if claimed is None or claimed.kind is not CallKind.SEND:
        return claimed
    return replace(claimed, row=replace(claimed.row, next_call=CallKind.SEND))


def sends_again(entry: Claimed, kind: CallKind, answer: Answer, step: Settle | Again) -> Settle | Again:
    if isinstance(step, Again) and step.next_call is CallKind.STATUS:
        return replace(step, next_call=CallKind.SEND)
    return step


def resend_unasked(protocol: Protocol) -> Protocol:
    return replace(deciding(sends_again)(protocol), claim=claim_to_send_again)


def refused_is_sent_again(
    entry: Claimed, kind: CallKind, answer: Answer, step: Settle | Again
) -> Settle | Again:
    if answer.outcome is Outcome.REFUSED and kind is CallKind.SEND and isinstance(step, Again):
        return Again(CallKind.SEND, step.delay_s, Wanted.DELIVER, None, verdict=True)
    return step


def claim_late(row: Row, call: str, policy: Policy, *, late: bool) -> ClaimedRow | None:
    return rows.claim(row, call, policy, late=False)


def claim_for_ever(row: Row, call: str, policy: Policy, *, late: bool) -> ClaimedRow | None:
    return rows.claim(row, call, replace(policy, poison_claims=1_000), late=late)


def claim_the_unsent(row: Row, call: str, policy: Policy, *, late: bool) -> ClaimedRow | None:
    # As if something had been sent: then only a seal can tell.
    claimed = rows.claim(replace(row, attempts=row.attempts + 1), call, policy, late=late)
    if claimed is None:
        return None
    return replace(claimed, row=replace(claimed.row, attempts=claimed.row.attempts - 1))


def no_budget(
    entry: Claimed, kind: CallKind, answer: Answer, policy: Policy, random: Callable[[], float]
) -> Settle | Again:
    return product.next_step(entry, kind, answer, replace(policy, budget=1_000), random)


def never(row: Row, *_: object, **__: object) -> None:
    return None
