"""docs/reference/python.md is what the docstrings say."""

import oncebox_outbox
from scripts import python_reference
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "python.md"


def test_the_reference_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8").rstrip() == python_reference.text().rstrip(), (
        "make it again: python scripts/python_reference.py docs/reference/python.md"
    )


def test_every_public_name_has_a_section() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert [name for name in oncebox_outbox.__all__ if f"\n## {name}\n" not in text] == []
