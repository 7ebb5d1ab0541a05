"""docs/guarantees.md is made from docs/guarantees.toml, and what the latter says of the code is still there."""

import ast
from pathlib import Path

import pytest

from tests.proof.mutations.catalogue import ROOT, Catalogue, Mutation, WrongCatalogue, function_of, read
from tests.proof.mutations.page import with_tables

PAGE = ROOT / "docs" / "guarantees.md"
CATALOGUE = read()

# The lines that have to be shown to be load-bearing at least, and the faults that show it.
ASKED_FOR = {
    "live call in settle (lease accounting)": ["live-call-goes-on", "live-call-settles"],
    "key lock": ["key-lock", "key-lock-of-a-batch"],
    "clock after the lock": ["clock-after-the-lock", "notes-time-under-the-grant"],
    "re-read in a new statement": [
        "re-read-after-the-lock",
        "new-statement-new-snapshot",
        "existing-in-a-new-statement",
    ],
    "uniqueness of the record": ["record-is-unique"],
    "note and record in one transaction": ["note-and-record-in-one-transaction"],
    "receipt and state in one transaction": ["receipt-and-state-in-one-transaction"],
    "false proof: a refusal without a seal": ["refusal-without-a-seal"],
    "false proof: not_found": ["not-found-believed"],
    "false proof: 409": ["409-believed"],
    "false proof: 410": ["410-believed"],
    "false proof: deadline passed": ["passed-deadline-believed"],
    "false proof: not_sent after an unknown": ["not-sent-after-an-unknown-believed"],
    "status before resend": ["status-before-resend", "status-after-a-crash"],
    "tombstone purge": ["tombstone-purge", "tombstone-margin", "tombstone-purge-under-the-lock"],
    "the entry's foreign key": ["entrys-foreign-key"],
    "synchronous_commit": ["synchronous-commit", "synchronous-commit-of-the-note"],
    "trace-based not_sent": ["not-sent-by-the-trace", "error-of-sending", "unknown-event-is-sending"],
    "args_hash comparison": [
        "senders-args-hash",
        "receivers-args-hash",
        "clients-args-hash",
        "receipt-for-our-arguments",
    ],
    "grant lock": ["grant-lock", "grant-read-after-the-lock"],
    "deferred wake-up": ["wake-up-is-deferred"],
}


def test_the_tables_of_the_page_are_those_of_the_catalogue() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == with_tables(page, CATALOGUE), (
        "make them again: python -m tests.proof.mutations.page docs/guarantees.md"
    )


@pytest.mark.parametrize("asked", ASKED_FOR)
def test_every_line_that_was_asked_for_has_its_fault(asked: str) -> None:
    assert set(ASKED_FOR[asked]) <= {mutation.name for mutation in CATALOGUE.mutations()}


@pytest.mark.parametrize("mutation", list(CATALOGUE.mutations()), ids=lambda mutation: mutation.name)
def test_a_fault_still_has_its_place_in_the_code(mutation: Mutation) -> None:
    """A line that moved takes its entry in docs/guarantees.toml along. With the fault the file is still a program."""
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in mutation.files}
    for edit in mutation.edits:
        texts[edit.file] = edit.applied(texts[edit.file])
    for text in texts.values():
        ast.parse(text)


def test_every_test_of_a_fault_exists() -> None:
    tests = {function_of(test) for mutation in CATALOGUE.mutations() for test in mutation.tests}
    missing = [
        test
        for test in sorted(tests)
        if f"def {test.partition('::')[2]}(" not in (ROOT / test.partition("::")[0]).read_text("utf-8")
    ]

    assert missing == []


RIGHT = """
[[guarantee]]
number = 1
side = "sender"
promise = "p"
kept_by = "k"
tests = ["tests/a.py::test_a"]
[[guarantee.mutation]]
name = "m"
fault = "f"
file = "a.py"
find = "a"
replace = "b"
"""


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("number = 1", "number = 2", "count from 1"),
        ('side = "sender"', 'side = "broker"', "not sender or receiver"),
        ('promise = "p"', 'promise = " "', "promise is missing"),
        ('kept_by = "k"', 'kept_by = "k"\nsince = "1.0"', "nobody reads since"),
        ('fault = "f"', 'fault = "f"\ntests = ["tests/b.py::test_b"]', "not among the guarantee's tests"),
        ('find = "a"', 'find = ""', "find is missing"),
        ('replace = "b"', "", "replace has to be text"),
    ],
)
def test_a_wrong_catalogue_says_what_is_wrong(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    assert isinstance(_catalogue(tmp_path, RIGHT), Catalogue)
    with pytest.raises(WrongCatalogue, match=said):
        _catalogue(tmp_path, RIGHT.replace(right, wrong))


def test_a_promise_without_a_fault_is_a_wrong_catalogue(tmp_path: Path) -> None:
    with pytest.raises(WrongCatalogue, match="which line keeps it"):
        _catalogue(tmp_path, RIGHT.partition("[[guarantee.mutation]]")[0])


@pytest.mark.parametrize("text", ["", "aa", "bcd"])
def test_a_fault_needs_a_place_that_occurs_once(tmp_path: Path, text: str) -> None:
    (mutation,) = _catalogue(tmp_path, RIGHT).mutations()
    with pytest.raises(WrongCatalogue, match="times, not once"):
        mutation.edits[0].applied(text)


def _catalogue(folder: Path, text: str) -> Catalogue:
    file = folder / "guarantees.toml"
    file.write_text(text, encoding="utf-8")
    return read(file)
