"""Research notes that the demonstration's agent saves: written for it, of many lengths, in many scripts.

`research_notes.jsonl` is made by `python -m oncebox_operate.demo.corpus.compose` from the sentences in `sentences.toml`.
"""

import json
from dataclasses import dataclass
from importlib import resources
from typing import Final

_FILE: Final = "research_notes.jsonl"


@dataclass(frozen=True, slots=True)
class ResearchNote:
    """Title, text and format (markdown or plain), as they are saved."""

    title: str
    text: str
    format: str


def load() -> list[ResearchNote]:
    """All of them, always in the same order."""
    lines = resources.files(__name__).joinpath(_FILE).read_text(encoding="utf-8").splitlines()
    return [ResearchNote(**json.loads(line)) for line in lines]
