"""What must hold, each by the name under which a broken one is reported."""

from typing import Final

PROPERTIES: Final = {
    "one_note": "there is at most one note",
    "definite": "saved means one note for ever; refused, not saved and sealed mean none for ever",
    "true_words": "not sent yet: nothing is on its way; not confirmed yet: no earlier call is in doubt",
    "true_answers": "the receiver says what it holds",
    "arrows": "each change of the state that people see is an arrow of the table",
    "storable": "each step is a row that the constraints admit",
    "ends": "workers and receiver alone lead to an end, with the grant and the clocks as they are",
    "owner_gets_the_receipt": "a note that exists is answered with its receipt, whatever the grants are now",
    "nothing_after_the_deadline": "no note is made after the deadline by the receiver's clock",
    "revoked_is_revoked": "no note is made once a revocation is confirmed",
    "a_receipt_is_believed": "a receipt that a worker writes down reads as saved",
    "who_holds_the_lease_is_heard": "the answer of a call whose lease never ran out is taken",
    "given_up_is_never_sent": "what is given up is only sealed, for ever",
    "late_is_never_sent": "nothing is sent after the deadline by the sender's clock",
    "calls_without_a_verdict_are_bounded": "calls without a verdict stay within the budget",
    "a_call_has_an_attempt": "an entry that a call holds has an attempt",
    "poison_is_bounded": "claims without an outcome stay within their bound",
    "unsent_is_settled_at_home": "what is given up and was never sent is not called for",
    "asked_before_sent_again": "with prompt packets, nothing is sent to a receiver that holds the note already",
}
