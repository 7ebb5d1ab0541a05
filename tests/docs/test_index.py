"""docs/index.md leads to every page, once."""

import re

from tests.docs.pages import ROOT

DOCS = ROOT / "docs"


def test_every_page_is_linked_once() -> None:
    linked = re.findall(r"\]\(([^)#]+)\)", (DOCS / "index.md").read_text(encoding="utf-8"))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"index.md"}

    assert sorted(linked) == sorted(pages)
