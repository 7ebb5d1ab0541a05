"""The drawing of the states is the transition table of the code."""

import re
from pathlib import Path

from oncebox_models.states import ARROWS, State

PAGE = Path(__file__).parents[3] / "docs" / "state_machine.md"
ARROW = re.compile(r"^\s+(\[\*\]|\w+) --> (\w+): (.+)$", re.MULTILINE)


def test_every_arrow_is_drawn_and_every_drawn_arrow_is_allowed() -> None:
    drawn = {
        (None if source == "[*]" else source, event, target)
        for source, target, event in ARROW.findall(PAGE.read_text())
    }
    # A colon ends a label in the drawing's language.
    allowed = {(arrow.source, arrow.event.replace(":", " -"), arrow.target) for arrow in ARROWS}

    assert drawn == allowed


def test_every_state_is_explained_in_the_table() -> None:
    explained = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text().split("## ")[0], re.MULTILINE))

    assert explained == set(State)


def test_nothing_leads_out_of_a_definite_state() -> None:
    sources = {arrow.source for arrow in ARROWS}

    assert sources.isdisjoint({State.SAVED, State.REFUSED, State.NOT_SAVED})
