"""The rules of the protocol, each with what the protocol would be without it.

`keeps` is the property that breaks without the rule: `without` makes the protocol that lacks it, and exploring that
one prints a shortest way there. Where `keeps` is none of `SAFETY`, the rule is not needed for one note and true words:
it is there for what it keeps.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from oncebox_models.outcomes import Outcome
from oncebox_models.states import State
from tests.proof.model import lacking
from tests.proof.model.sender import POLICY, Protocol

SAFETY: Final = frozenset({"one_note", "definite", "true_words", "true_answers"})
SMALL: Final = replace(POLICY, budget=1)
"""For what is only seen when everything was explored."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. says: what it demands. keeps: the property that breaks without it."""

    name: str
    says: str
    keeps: str
    without: Callable[[Protocol], Protocol]

    def start(self) -> Protocol:
        """The protocol that the rule is taken from: the smallest world in which it is missed."""
        match self.keeps:
            case "ends":
                return Protocol(policy=SMALL)
            case "asked_before_sent_again":
                return Protocol(calm=True)
            case _:
                return Protocol()


_NO_PROOFS: Final = {
    Outcome.REFUSED: (State.REFUSED, "a refusal of one packet is no end: another may be on its way"),
    Outcome.GONE: (State.NOT_SAVED, "410 is no end: clocks step back"),
    Outcome.UNAUTHENTICATED: (State.REFUSED, "401 speaks of our token, not of the write"),
    Outcome.NOT_EXECUTED: (State.NOT_SAVED, "429 and 503 speak of one packet"),
    Outcome.NOT_SENT: (State.NOT_SAVED, "a call that never began says nothing of an earlier one"),
    Outcome.NOT_FOUND: (State.NOT_SAVED, "not_found is no end: a packet may be on its way"),
    Outcome.IN_PROGRESS: (State.NOT_SAVED, "409 in progress is no end: the other execution may save it"),
    Outcome.UNKNOWN: (State.NOT_SAVED, "silence is no end"),
}

RULES: Final = (
    *(
        Rule(f"only_proofs_settle.{outcome}", says, "definite", lacking.settles(outcome, final))
        for outcome, (final, says) in _NO_PROOFS.items()
    ),
    Rule(
        "only_proofs_settle.deadline",
        "a deadline that passed is no end once something was sent",
        "definite",
        lambda protocol: replace(protocol, settle_unsent=lacking.deadline_settles),
    ),
    Rule(
        "only_proofs_settle.budget",
        "a spent budget is no end",
        "definite",
        lacking.deciding(lacking.spent_budget_settles),
    ),
    Rule(
        "only_proofs_settle.cancel",
        "a cancel is no end once something was sent",
        "definite",
        lambda protocol: replace(protocol, cancel=lacking.cancel_settles),
    ),
    Rule(
        "receipt_checked",
        "a receipt counts only for our key and our arguments",
        "definite",
        lambda protocol: replace(protocol, answer=lacking.reads_any_receipt, checked=lacking.believed),
    ),
    Rule(
        "claim_counts_before_send",
        "the attempt is counted, and counted as unanswered, before anything is sent",
        "definite",
        lambda protocol: replace(
            protocol, claim=lacking.claim_without_counting, settle=lacking.settle_and_count
        ),
    ),
    Rule(
        "live_call_guards",
        "only the live call writes an answer that is no receipt",
        "definite",
        lambda protocol: replace(protocol, settle=lacking.settle_from_any_call, guarded=False),
    ),
    Rule(
        "not_sent_gives_back_only_its_own_call",
        "a question or a seal that never began gives no attempt back",
        "definite",
        lacking.deciding(lacking.returns_any),
    ),
    Rule(
        "a_verdict_is_on_its_own_call",
        "401, 429 and 503 to a question or a seal are no verdict on a send",
        "true_words",
        lacking.deciding(lacking.verdict_of_any),
    ),
    Rule(
        "lapsed_lease_is_unknown",
        "a send whose lease ran out is in doubt, by the clock alone",
        "true_words",
        lambda protocol: replace(protocol, state=lacking.lapsed_reads_as_never_sent),
    ),
    Rule(
        "unknown_stays_unknown",
        "what is in doubt stays so while it is asked for, sealed or sent again",
        "arrows",
        lambda protocol: replace(protocol, state=lacking.what_is_asked_reads_as_sending),
    ),
    Rule(
        "one_key_for_all_attempts",
        "every attempt carries the same key",
        "one_note",
        lambda protocol: replace(protocol, one_key=False),
    ),
    Rule(
        "deadline_sent_with_every_call",
        "the receiver knows and checks the deadline of each send",
        "definite",
        lacking.receiving(deadline_checked=False),
    ),
    Rule(
        "one_record_a_key",
        "the receiver executes a key once: a record that exists answers",
        "one_note",
        lacking.receiving(one_record_a_key=False),
    ),
    Rule(
        "note_with_its_record",
        "record and note are one transaction",
        "true_answers",
        lacking.receiving(note_with_its_record=False),
    ),
    Rule(
        "seal_leaves_a_tombstone",
        "what is sealed is recorded as sealed",
        "definite",
        lacking.receiving(seal_leaves_a_tombstone=False),
    ),
    Rule(
        "seal_reads_the_record",
        "a seal of a key that is completed answers with the receipt",
        "definite",
        lacking.receiving(seal_reads_the_record=False),
    ),
    Rule(
        "tombstones_outlive_packets",
        "a tombstone goes only when no packet of its key is admitted any more",
        "definite",
        lacking.receiving(tombstones_outlive_packets=False),
    ),
    Rule(
        "completed_records_stay",
        "the record of a note is never purged",
        "definite",
        lacking.receiving(completed_records_stay=False),
    ),
    Rule(
        "clock_steps_back_less_than_the_margin",
        "the receiver's clock never steps back by more than the margin of tombstones (an operator's duty)",
        "definite",
        lacking.receiving(clock_steps_back_less_than_the_margin=False),
    ),
    Rule(
        "key_lock",
        "whoever writes under a key holds its lock from before its first look",
        "nothing_after_the_deadline",
        lacking.receiving(key_lock=False),
    ),
    Rule(
        "clock_after_lock",
        "the clock is read while the lock is held, with the write",
        "nothing_after_the_deadline",
        lacking.receiving(clock_after_lock=False),
    ),
    Rule(
        "record_before_grant",
        "an existing record answers before the grant is looked at",
        "owner_gets_the_receipt",
        lacking.receiving(record_before_grant=False),
    ),
    Rule(
        "grant_read_under_lock",
        "the grant is locked until the write is done: a revocation waits",
        "revoked_is_revoked",
        lacking.receiving(grant_read_under_lock=False),
    ),
    Rule(
        "receipt_from_any_call",
        "a receipt is taken from a call that lost its lease, too",
        "a_receipt_is_believed",
        lambda protocol: replace(protocol, settle=lacking.settle_from_the_live_call_only),
    ),
    Rule(
        "claim_needs_no_live_lease",
        "one call at a time",
        "who_holds_the_lease_is_heard",
        lambda protocol: replace(protocol, claim=lacking.claim_under_a_lease),
    ),
    Rule(
        "poison_needs_no_live_lease",
        "what is being asked for is not parked",
        "who_holds_the_lease_is_heard",
        lambda protocol: replace(protocol, park_poison=lacking.park_under_a_lease),
    ),
    Rule(
        "a_cancel_stays",
        "an answer does not take back a cancel that came while its call was under way",
        "given_up_is_never_sent",
        lambda protocol: replace(protocol, settle=lacking.settle_takes_a_cancel_back),
    ),
    Rule(
        "late_is_only_sealed",
        "after the deadline the next call is a seal, whatever it was to be",
        "late_is_never_sent",
        lambda protocol: replace(protocol, claim=lacking.claim_late),
    ),
    Rule(
        "unsent_is_never_called",
        "what is given up before anything was sent is settled at home",
        "unsent_is_settled_at_home",
        lambda protocol: replace(protocol, claim=lacking.claim_the_unsent),
    ),
    Rule(
        "giving_up_is_written_down",
        "whoever goes over to sealing writes down that delivery is no longer wanted",
        "storable",
        lacking.deciding(lacking.gone_is_still_wanted),
    ),
    Rule(
        "budget",
        "after so many calls without a verdict nothing is sent any more",
        "calls_without_a_verdict_are_bounded",
        lambda protocol: replace(protocol, next_step=lacking.no_budget),
    ),
    Rule(
        "poison_is_claimed_so_often",
        "what ends its workers is not claimed for ever",
        "poison_is_bounded",
        lambda protocol: replace(protocol, claim=lacking.claim_for_ever),
    ),
    Rule(
        "status_before_resend",
        "after silence the receiver is asked before anything is sent again",
        "asked_before_sent_again",
        lacking.resend_unasked,
    ),
    Rule(
        "seal_after_refusal",
        "a refusal leads to a seal",
        "ends",
        lacking.deciding(lacking.refused_is_sent_again),
    ),
    Rule(
        "poison_is_parked",
        "what was claimed so often is set aside for a person",
        "ends",
        lambda protocol: replace(protocol, park_poison=lacking.never),
    ),
    Rule(
        "unsent_is_settled",
        "what was given up and never sent is settled by itself",
        "ends",
        lambda protocol: replace(protocol, settle_unsent=lacking.never),
    ),
)
REDUNDANT: Final = Rule(
    "unsent_needs_no_live_lease",
    "what was never sent is settled at home only if no call holds it",
    "a_call_has_an_attempt",
    lambda protocol: replace(
        protocol, cancel=lacking.cancel_under_a_lease, settle_unsent=lacking.settle_unsent_under_a_lease
    ),
)
"""Not a rule: where each call counts its attempt and the unsent is never called for, it decides nothing."""

BY_NAME: Final = {rule.name: rule for rule in RULES}
