"""What an answer means for an operation: pure rules, no I/O.

Only four proofs settle an operation: a receipt, a seal, a key held for other arguments, and (in
`statements.SETTLE_UNSENT`) that nothing can ever have been sent. Every other answer chooses the next call.
"""

from dataclasses import dataclass, replace
from typing import assert_never

from oncebox_models.outcomes import Answer, Outcome
from oncebox_models.schedule import Random
from oncebox_models.states import CallKind, Reason, State, Wanted
from oncebox_outbox.policy import Policy


@dataclass(frozen=True, slots=True)
class Claimed:
    """What the rules need to know of an entry as it was claimed: counts include the call under way."""

    args_hash: str
    wanted: Wanted
    wanted_reason: str | None
    attempts: int
    unanswered: int
    retries: int
    last_outcome: str | None


@dataclass(frozen=True, slots=True)
class Settle:
    """The operation ends as `final`."""

    final: State
    reason: str | None
    violation: str | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """The operation stays live. `delay_s` is counted from the settling statement, by the database's clock.

    verdict: this call is known not to have executed, so it no longer counts as unanswered.
    returned: this call never began, so it no longer counts as an attempt.
    """

    next_call: CallKind
    delay_s: float
    wanted: Wanted
    wanted_reason: str | None
    verdict: bool = False
    returned: bool = False
    access_lost: bool = False
    violation: str | None = None


def checked(answer: Answer, operation_id: str, args_hash: str) -> Answer:
    """The answer, with a receipt only if it is a receipt for this operation; else what that receipt amounts to."""
    receipt = answer.receipt
    if answer.outcome is not Outcome.RECEIPT:
        return answer if receipt is None else replace(answer, receipt=None)
    if receipt is None or receipt.operation_id != operation_id:
        return replace(answer, outcome=Outcome.UNKNOWN, reason="foreign_receipt", receipt=None)
    if receipt.args_hash != args_hash:
        return replace(answer, outcome=Outcome.CONFLICT, reason=Reason.ARGUMENT_CONFLICT, receipt=None)
    return answer


def next_step(
    entry: Claimed, kind: CallKind, answer: Answer, policy: Policy, random: Random
) -> Settle | Again:
    """Decide what follows from one answer to one call of `kind`."""
    match answer.outcome:
        case Outcome.RECEIPT:
            return Settle(State.SAVED, None)
        case Outcome.CONFLICT:
            return Settle(State.REFUSED, Reason.ARGUMENT_CONFLICT, violation="argument_conflict")
        case Outcome.SEALED:
            return _sealed(entry, answer)
        case Outcome.REFUSED:
            return _refused(entry, kind, answer, policy, random)
        case Outcome.GONE:
            return _only_seal(entry, kind, Wanted.ABANDON, Reason.EXPIRED, policy, random)
        case Outcome.UNAUTHENTICATED:
            return _unauthenticated(entry, kind, policy, random)
        case Outcome.NOT_EXECUTED:
            delay_s = policy.schedule.delay_s(entry.retries, random, not_before_s=answer.retry_after_s or 0.0)
            return _again(entry, kind, delay_s, verdict=True)
        case Outcome.NOT_SENT:
            delay_s = policy.schedule.delay_s(entry.retries, random, not_before_s=answer.retry_after_s or 0.0)
            return _again(entry, kind, delay_s, verdict=True, returned=True)
        case Outcome.NOT_FOUND:
            # Proves nothing, but after a status query a resend under the same key is safe at once: the receiver
            # decides duplicates. As an answer to anything else it must not make us hurry.
            asked = kind is CallKind.STATUS
            delay_s = 0.0 if asked else policy.schedule.delay_s(entry.retries, random)
            return _within_budget(entry, CallKind.SEND, delay_s, policy)
        case Outcome.IN_PROGRESS | Outcome.UNKNOWN:
            delay_s = policy.schedule.delay_s(entry.retries, random, not_before_s=answer.retry_after_s or 0.0)
            step = _within_budget(entry, CallKind.STATUS, delay_s, policy)
            return _with_violation(step, answer)
        case _:
            assert_never(answer.outcome)


def _sealed(entry: Claimed, answer: Answer) -> Settle:
    """The key is closed for good. Who asked for it decides the word: a refusal, or our own giving up."""
    match entry.wanted:
        case Wanted.REFUSE:
            return Settle(State.REFUSED, entry.wanted_reason or answer.reason)
        case Wanted.ABANDON:
            return Settle(State.NOT_SAVED, entry.wanted_reason or answer.reason)
        case Wanted.DELIVER:
            # Somebody else with this principal's rights sealed the key before we sent.
            return Settle(State.NOT_SAVED, "sealed_elsewhere")
        case _:
            assert_never(entry.wanted)


def _refused(entry: Claimed, kind: CallKind, answer: Answer, policy: Policy, random: Random) -> Again:
    """A refusal of a send leads to a seal at once. A refused status or seal says nothing of the key: ask again."""
    if kind is CallKind.SEND:
        return _only_seal(entry, kind, Wanted.REFUSE, answer.reason, policy, random)
    return _again(entry, kind, policy.schedule.delay_s(entry.retries, random), verdict=False)


def _only_seal(
    entry: Claimed, kind: CallKind, wanted: Wanted, reason: str, policy: Policy, random: Random
) -> Again:
    """From now on only seal: at once after a send, on the schedule when it was a seal that got this answer."""
    keeps = entry.wanted is not Wanted.DELIVER
    return Again(
        CallKind.SEAL,
        0.0 if kind is CallKind.SEND else policy.schedule.delay_s(entry.retries, random),
        entry.wanted if keeps else wanted,
        entry.wanted_reason if keeps else reason,
        verdict=kind is CallKind.SEND,
    )


def _unauthenticated(entry: Claimed, kind: CallKind, policy: Policy, random: Random) -> Again:
    """Our token is not accepted. Nothing was executed, nobody's write is refused for it: keep asking."""
    delay_s = policy.schedule.delay_s(entry.retries, random)
    step = _again(entry, kind, delay_s, verdict=True)
    lasts = entry.last_outcome == Outcome.UNAUTHENTICATED and entry.retries + 1 >= policy.access_lost_after
    return Again(
        step.next_call, step.delay_s, step.wanted, step.wanted_reason, verdict=step.verdict, access_lost=lasts
    )


def _again(entry: Claimed, kind: CallKind, delay_s: float, *, verdict: bool, returned: bool = False) -> Again:
    """The same kind of call once more. Only a send is an attempt, so only a send has one to give back."""
    send = kind is CallKind.SEND
    return Again(
        kind,
        delay_s,
        entry.wanted,
        entry.wanted_reason,
        verdict=verdict and send,
        returned=returned and send,
    )


def _within_budget(entry: Claimed, next_call: CallKind, delay_s: float, policy: Policy) -> Again:
    """Go on delivering while calls without a verdict are within the budget; then only seal."""
    if entry.wanted is not Wanted.DELIVER:
        return Again(CallKind.SEAL, delay_s, entry.wanted, entry.wanted_reason)
    if entry.unanswered >= policy.budget:
        return Again(CallKind.SEAL, delay_s, Wanted.ABANDON, Reason.BUDGET_SPENT)
    return Again(next_call, delay_s, Wanted.DELIVER, None)


def _with_violation(step: Again, answer: Answer) -> Again:
    if answer.reason != "foreign_receipt":
        return step
    return Again(step.next_call, step.delay_s, step.wanted, step.wanted_reason, violation="foreign_receipt")
