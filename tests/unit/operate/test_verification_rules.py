"""What `verify` finds wrong between the ledger and the receiver's rows: one case a rule."""

from dataclasses import replace
from uuid import UUID

import pytest

from oncebox_destinations.protocol import StoredNote
from oncebox_models.outcomes import Receipt
from oncebox_models.states import State
from oncebox_operate import verification_rules
from oncebox_operate.ledger import Key, Written
from oncebox_operate.verification_rules import Entry, Found

KEY = Key("demo", "researcher", "note-7")
HASH = "ab" * 32
NOTE = {"id": "n1", "folder": "drafts", "version": 1, "etag": "1-ab", "location": "/v1/notes/n1"}
SAVED = Entry(UUID(int=7), KEY, HASH, State.SAVED, Receipt("note-7", HASH, NOTE), b"digest")
ROW = Written(KEY, "n1", 1, "drafts", "1-ab", HASH, b"digest", "drafts", True, True, True)
STORED = StoredNote(
    "n1",
    "drafts",
    1,
    "1-ab",
    "/v1/notes/n1",
    "2031-01-01T00:00:00Z",
    "T",
    "x",
    "markdown",
    "researcher",
    "note-7",
    HASH,
)


def found(entry: Entry, *rows: Written) -> list[Found]:
    return [problem.found for problem in verification_rules.compare(entry, rows)]


def test_a_saved_operation_with_its_note_is_right() -> None:
    assert found(SAVED, ROW) == []


def test_saved_without_a_note_is_lost() -> None:
    assert found(SAVED) == [Found.LOST]


def test_a_second_row_under_the_key_is_a_duplicate() -> None:
    assert found(SAVED, ROW, replace(ROW, note_id="n2")) == [Found.DUPLICATE]


@pytest.mark.parametrize(
    "row",
    [
        replace(ROW, note_id="n2"),
        replace(ROW, version=2),
        replace(ROW, etag="2-cd"),
        replace(ROW, content=b"another"),
        replace(ROW, lies_in="elsewhere"),
        replace(ROW, recorded=False),
    ],
)
def test_a_note_that_is_not_what_the_receipt_says_is_a_mismatch(row: Written) -> None:
    assert found(SAVED, row) == [Found.MISMATCH]


def test_a_receipt_for_other_arguments_than_the_note_holds_is_a_mismatch() -> None:
    assert found(SAVED, replace(ROW, args_hash="cd" * 32)) == [Found.MISMATCH]


def test_a_note_without_a_grant_in_force_when_it_was_written_is_named() -> None:
    assert found(SAVED, replace(ROW, granted=False)) == [Found.NOT_PERMITTED]


@pytest.mark.parametrize("state", [State.REFUSED, State.NOT_SAVED])
def test_a_note_in_spite_of_a_definite_no_is_a_contradiction(state: State) -> None:
    assert found(replace(SAVED, state=state, receipt=None), ROW) == [Found.CONTRADICTION]


def test_a_note_of_other_arguments_under_a_refused_key_is_why_it_was_refused() -> None:
    assert found(replace(SAVED, state=State.REFUSED, receipt=None), replace(ROW, args_hash="cd" * 32)) == []


@pytest.mark.parametrize(
    "state", [State.PENDING, State.SENDING, State.RETRYING, State.UNKNOWN, State.NEEDS_REVIEW]
)
def test_a_note_that_is_not_confirmed_yet_is_right(state: State) -> None:
    assert found(replace(SAVED, state=state, receipt=None), ROW) == []
    assert found(replace(SAVED, state=state, receipt=None)) == []


def test_a_pruned_operation_has_no_text_to_compare() -> None:
    assert found(replace(SAVED, content=None), replace(ROW, content=b"another")) == []


def test_the_note_as_read_must_be_the_one_of_the_receipt() -> None:
    assert verification_rules.compare_read(SAVED, STORED, ROW) == []
    for wrong in (
        replace(STORED, operation_id="note-8"),
        replace(STORED, args_hash="cd" * 32),
        replace(STORED, version=2),
        replace(STORED, folder="elsewhere"),
        replace(STORED, principal="another"),
        replace(STORED, id="n2"),
    ):
        (problem,) = verification_rules.compare_read(SAVED, wrong, ROW)
        assert problem.found is Found.MISMATCH


def test_a_note_that_its_owner_may_read_and_does_not_get_is_named() -> None:
    (problem,) = verification_rules.compare_read(SAVED, None, ROW)
    assert problem.found is Found.UNREADABLE


def test_a_note_whose_owner_has_no_grant_any_more_is_rightly_not_handed_out() -> None:
    assert verification_rules.compare_read(SAVED, None, replace(ROW, readable=False)) == []
