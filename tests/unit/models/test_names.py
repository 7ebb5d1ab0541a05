"""Names people choose: what is wrong is said with the value and what to do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncebox_models.names import wrong_label, wrong_operation_id, wrong_party, wrong_text


@pytest.mark.parametrize("value", ["note-7", "7", "A", "x" * 128, "run-42:step.1_a", "note.create:0f"])
def test_a_right_operation_id_is_accepted(value: str) -> None:
    assert wrong_operation_id(value) is None


@pytest.mark.parametrize("value", ["", " ", "\t", "\u200b", "\u00a0", "\ufeff", "\u2060\u200d", "\x00"])
def test_a_blank_operation_id_is_wrong_and_never_no_id(value: str) -> None:
    """F7."""
    wrong = wrong_operation_id(value)
    assert wrong is not None
    assert wrong.startswith("is blank; leave it out to have one derived")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("x" * 129, "has 129 characters; at most 128 are allowed"),
        ("-note", "'-note' must start with a letter or digit"),
        ("note 7", "hold only letters, digits and . _ : -"),
        ("note-7\n", "'note-7\\n' must start"),
        ("ñote", "'ñote' must start"),
        ("note\ud800", "must start"),
        (7, "must be a string, got int"),
        (b"note-7", "must be a string, got bytes"),
    ],
)
def test_a_wrong_operation_id_is_told_with_its_value(value: object, said: str) -> None:
    assert said in (wrong_operation_id(value) or "")


@pytest.mark.parametrize("value", ["demo", "agent@example.org", "a:b", "x" * 128])
def test_a_right_party_is_accepted(value: str) -> None:
    assert wrong_party(value) is None


@pytest.mark.parametrize("value", ["", " ", "a/b", "a\x00", "x" * 129, "-a", 7, None])
def test_a_wrong_party_is_told(value: object) -> None:
    """A slash would let two scoped ordering keys meet."""
    assert wrong_party(value)


@pytest.mark.parametrize("value", ["summarise", "Schritt 1: Überblick", "a/b", "x" * 200])
def test_a_right_label_is_accepted(value: str) -> None:
    assert wrong_label(value) is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "is blank"),
        (" \t", "is blank"),
        ("x" * 201, "has 201 characters; at most 200"),
        ("a\nb", "control character"),
        ("a\x00", "NUL character at position 1"),
        ("a\udfff", "lone surrogate at position 1"),
        (None, "must be a string, got NoneType"),
    ],
)
def test_a_wrong_label_is_told(value: object, said: str) -> None:
    assert said in (wrong_label(value) or "")


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
def test_all_other_text_can_be_stored(value: str) -> None:
    assert wrong_text(value) is None


@given(st.text(), st.sampled_from(["\x00", "\ud800", "\udfff"]), st.text())
def test_nul_and_lone_surrogates_are_found_wherever_they_are(before: str, bad: str, after: str) -> None:
    assert wrong_text(before + bad + after)
