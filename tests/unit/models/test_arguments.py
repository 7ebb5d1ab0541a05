"""Arguments are closed schemas of strings: every fault is found at once, with its path and the limit."""

from typing import Any

import pytest

from oncebox_models.arguments import FOLDER_LENGTH, TEXT_BYTES, TITLE_LENGTH, check_arguments

CREATE: dict[str, object] = {"folder": "drafts", "title": "Finding 7", "text": "Reef B"}
REVISE: dict[str, object] = {"note_id": "n-1", "if_match": '"1"', "title": "Finding 7", "text": "Reef B"}


def _faults(kind: str, arguments: dict[str, object]) -> dict[str, str]:
    stored, faults = check_arguments(kind, arguments)
    assert bool(faults) == (stored == {})
    return {fault.path: fault.message for fault in faults}


def test_the_format_is_filled_in() -> None:
    assert check_arguments("note.create", CREATE) == (CREATE | {"format": "markdown"}, [])
    assert check_arguments("note.revise", REVISE) == (REVISE | {"format": "markdown"}, [])


def test_every_fault_is_told_at_once() -> None:
    wrong: dict[str, object] = {"folder": " ", "title": 7, "format": "html", "authorized": True}
    assert _faults("note.create", wrong) == {
        "arguments.folder": "is blank",
        "arguments.title": "must be a string, got int",
        "arguments.text": "is required",
        "arguments.format": "Input should be 'markdown' or 'plain'",
        "arguments.authorized": "is not an argument of this kind; remove it",
    }


def test_a_model_supplied_grant_is_not_an_argument() -> None:
    assert "arguments.authorized" in _faults("note.create", CREATE | {"authorized": True})


def test_an_unknown_kind_names_those_that_are_known() -> None:
    assert _faults("note.delete", CREATE) == {
        "kind": "'note.delete' is not known here; known kinds: note.create, note.revise"
    }


@pytest.mark.parametrize("name", ["folder", "title", "text"])
@pytest.mark.parametrize(
    ("value", "said"), [("a\x00b", "NUL character at position 1"), ("a\ud800b", "lone surrogate")]
)
def test_text_that_cannot_be_stored_is_refused(name: str, value: str, said: str) -> None:
    faults = _faults("note.create", CREATE | {name: value})
    assert list(faults) == [f"arguments.{name}"]
    assert said in faults[f"arguments.{name}"]


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f600"])
def test_a_text_of_exactly_the_limit_is_accepted_and_one_byte_more_is_not(letter: str) -> None:
    """F48: the limit counts bytes of UTF-8; both numbers are in the message."""
    width = len(letter.encode())
    fits = letter * (TEXT_BYTES // width)
    assert _faults("note.create", CREATE | {"text": fits}) == {}
    faults = _faults("note.create", CREATE | {"text": fits + "x"})
    assert faults == {
        "arguments.text": "is 262,145 bytes of UTF-8; at most 262,144 are allowed. Split it into several notes"
    }


@pytest.mark.parametrize(("name", "limit"), [("title", TITLE_LENGTH), ("folder", FOLDER_LENGTH)])
def test_a_name_of_exactly_the_limit_is_accepted_and_one_character_more_is_not(name: str, limit: int) -> None:
    assert _faults("note.create", CREATE | {name: "é" * limit}) == {}
    faults = _faults("note.create", CREATE | {name: "é" * (limit + 1)})
    assert faults == {f"arguments.{name}": f"has {limit + 1} characters; at most {limit} are allowed"}


@pytest.mark.parametrize("name", ["note_id", "if_match"])
def test_a_revision_names_the_note_and_its_version(name: str) -> None:
    assert _faults("note.revise", REVISE | {name: ""}) == {f"arguments.{name}": "is blank"}
    assert list(_faults("note.revise", {key: REVISE[key] for key in REVISE if key != name})) == [
        f"arguments.{name}"
    ]


@pytest.mark.parametrize("value", [1, 1.5, float("nan"), True, None, ["x"], {"a": "b"}, b"x"])
def test_only_strings_are_arguments(value: object) -> None:
    """R32."""
    assert list(_faults("note.create", CREATE | {"text": value})) == ["arguments.text"]


def test_a_message_never_repeats_a_long_value() -> None:
    faults = _faults("note.create", CREATE | {"text": ["x" * 10_000]})
    assert len(faults["arguments.text"]) < 200


@pytest.mark.parametrize(
    ("kind", "arguments", "path"),
    [
        (["note.create"], {}, "kind"),
        ("note.create", None, "arguments"),
        ("note.create", ["folder"], "arguments"),
    ],
)
def test_what_is_of_another_type_altogether_is_a_fault(kind: Any, arguments: Any, path: str) -> None:
    _, faults = check_arguments(kind, arguments)

    assert [fault.path for fault in faults] == [path]
