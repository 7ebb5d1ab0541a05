"""docs/reference/cli.md is what the commands say of themselves."""

from pathlib import Path

from oncebox_operate import reference

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"


def test_the_reference_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference.text(), (
        "make it again: python -m oncebox_operate.reference docs/reference/cli.md"
    )
