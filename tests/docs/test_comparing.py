"""The comparison of what a page shows with what was seen can fail."""

from pathlib import Path

import pytest

from tests.docs.pages import agrees, blocks


@pytest.mark.parametrize(
    ("expected", "seen", "right"),
    [
        ("Saved: note-7 is note … version 1.", "Saved: note-7 is note 0199 version 1.  \n", True),
        ("Saved: note-7 is note … version 1.", "Saved: note-7 is note 0199 version 2.\n", False),
        ("a  b", "a      b\n", True),
        ("a  b", "a b\n", False),
        ("one\n…\nthree", "one\ntwo\ntwo\nthree\n", True),
        ("one\n…\nthree", "one\nthree\n", True),
        ("one\n…\nthree", "one\ntwo\n", False),
        ("one", "one\ntwo\n", False),
        ("one …", "one \ntwo\n", False),
    ],
)
def test_an_ellipsis_stands_for_what_differs_and_for_nothing_else(
    expected: str, seen: str, right: bool
) -> None:
    assert agrees(expected, seen) is right


def test_a_block_that_nobody_runs_or_compares_is_a_mistake(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```bash\necho never run\n```\n", encoding="utf-8")

    with pytest.raises(ValueError, match=r"page\.md:1: a block of 'bash' is neither run nor compared"):
        list(blocks(page))
