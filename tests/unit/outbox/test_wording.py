"""The first words decide, and no sentence says more than is proven."""

from collections.abc import Mapping
from itertools import product

import pytest

from oncebox_models.outcomes import Receipt
from oncebox_models.states import Reason, State, Wanted
from oncebox_outbox.wording import say

RECEIPT = Receipt(
    "note-7", "a" * 64, {"id": "n-1", "folder": "drafts", "version": 1, "location": "/v1/notes/n-1"}
)
PROBLEM: Mapping[str, object] = {
    "detail": "You may not write to plans.",
    "permitted_folders": ["drafts", "inbox"],
}


def _say(state: State, reason: str | None = None, wanted: Wanted | None = None) -> str:
    receipt = RECEIPT if state is State.SAVED else None
    return say(state, "note-7", reason, receipt, None, wanted)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (State.SAVED, "Saved: note-7 is note n-1 version 1 in folder 'drafts' at /v1/notes/n-1"),
        (State.PENDING, "NOT SENT YET: note-7"),
        (State.SENDING, "NOT CONFIRMED YET: note-7"),
        (State.RETRYING, "NOT CONFIRMED YET: note-7"),
        (State.UNKNOWN, "OUTCOME UNKNOWN: note-7 may or may not be saved"),
        (State.REFUSED, "REFUSED: note-7 will never be saved under this id"),
        (State.NOT_SAVED, "NOT SAVED: note-7 will never be saved"),
        (State.NEEDS_REVIEW, "OUTCOME UNKNOWN: note-7 needs review"),
    ],
)
def test_a_sentence_begins_with_the_decisive_words(state: State, words: str) -> None:
    assert _say(state, "cancelled").startswith(words)


@pytest.mark.parametrize(
    ("state", "wanted", "reason"),
    list(product(State, [None, *Wanted], [None, "timeout", *Reason, "folder_not_writable"])),
)
def test_only_definite_states_make_definite_statements(
    state: State, wanted: Wanted | None, reason: str | None
) -> None:
    """R18, R46: neither saved without a receipt nor not saved without proof, whatever else is known."""
    sentence = _say(state, reason, wanted)
    assert ("never be saved" in sentence) == (state in (State.REFUSED, State.NOT_SAVED))
    assert sentence.startswith("Saved:") == (state is State.SAVED)
    assert "None" not in sentence or reason is None


@pytest.mark.parametrize("state", [State.SENDING, State.RETRYING])
def test_while_a_refusal_is_made_final_it_is_said_what_was_refused(state: State) -> None:
    """DESIGN 4: also while the seal is on its way."""
    sentence = say(state, "note-7", "folder_not_writable", None, PROBLEM, Wanted.REFUSE)
    assert sentence.startswith("NOT CONFIRMED YET: the receiver refused note-7")
    assert "You may not write to plans. Folders you may write to: drafts, inbox" in sentence
    assert "being made final" in sentence
    assert "sent" not in sentence


@pytest.mark.parametrize("state", [State.PENDING, State.SENDING, State.RETRYING, State.UNKNOWN])
def test_what_is_being_given_up_is_not_said_to_be_sent_again(state: State) -> None:
    sentence = say(state, "note-7", "cancelled", None, None, Wanted.ABANDON)
    assert "being given up" in sentence
    assert "sent again" not in sentence
    assert "waits to be delivered" not in sentence
    assert "last try" not in sentence


def test_a_refusal_names_the_permitted_folders_and_the_next_step() -> None:
    sentence = say(State.REFUSED, "note-7", "folder_not_writable", None, PROBLEM, None)
    assert sentence == (
        "REFUSED: note-7 will never be saved under this id: folder_not_writable: You may not write to plans."
        " Folders you may write to: drafts, inbox. Correct it and enqueue under a new operation_id."
    )


def test_a_refusal_without_any_permitted_folder_says_none() -> None:
    sentence = say(State.REFUSED, "note-7", "folder_not_writable", None, {"permitted_folders": []}, None)
    assert "Folders you may write to: none" in sentence


@pytest.mark.parametrize("reason", [Reason.POISON, Reason.ACCESS_LOST, Reason.RECEIVER_CANNOT_TELL, None])
def test_a_review_never_says_none(reason: str | None) -> None:
    assert "None" not in _say(State.NEEDS_REVIEW, reason)


def test_saved_without_a_receipt_cannot_be_said() -> None:
    with pytest.raises(ValueError, match="saved without a receipt"):
        say(State.SAVED, "note-7", None, None, None, None)


def test_a_receiver_that_was_never_seen_is_why_nothing_was_sent() -> None:
    told = say(State.PENDING, "note-7", Reason.RECEIVER_NEVER_SEEN, None, None, Wanted.DELIVER)

    assert told.startswith("NOT SENT YET: note-7")
    assert "no worker has reached its receiver yet" in told


def test_a_later_call_under_way_names_the_last_try() -> None:
    told = say(State.SENDING, "note-7", "rate_limited", None, None, Wanted.DELIVER)

    assert told == "NOT CONFIRMED YET: note-7 is being sent (last try: rate_limited); no answer yet."
