"""Makes `research_notes.jsonl`: `python -m oncebox_operate.demo.corpus.compose`. The same every time."""

import json
import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
TARGET: Final = HERE / "research_notes.jsonl"
_SEED: Final = 20250607
# How many notes of about how many bytes: from a remark to a season's diary.
_SIZES: Final = (
    (60, 20),
    (70, 120),
    (80, 500),
    (50, 1_500),
    (25, 4_000),
    (10, 9_000),
    (5, 20_000),
)


@dataclass(frozen=True, slots=True)
class _Language:
    titles: tuple[str, ...]
    remarks: tuple[str, ...]
    sentences: tuple[str, ...]


class _Composer:
    """Draws sentences, fills in numbers and places, and arranges them."""

    def __init__(self) -> None:
        material: dict[str, Any] = tomllib.loads((HERE / "sentences.toml").read_text(encoding="utf-8"))
        self._chance = random.Random(_SEED)
        self._places: list[str] = material["places"]["names"]
        self._signs: list[str] = material["signs"]["lines"]
        self._languages = [
            _Language(tuple(one["titles"]), tuple(one["remarks"]), tuple(one["sentences"]))
            for _, one in sorted(material["languages"].items())
        ]

    def notes(self) -> Iterator[dict[str, str]]:
        """All notes, sizes and languages mixed."""
        sizes = [size for count, size in _SIZES for _ in range(count)]
        self._chance.shuffle(sizes)
        for number, size in enumerate(sizes):
            # Each language in turn: none is left out, however few sentences it has.
            language = self._languages[number % len(self._languages)]
            yield self._note(language, size)

    def _note(self, language: _Language, size: int) -> dict[str, str]:
        title = self._filled(self._chance.choice(language.titles))
        if size < 100:
            remark = self._filled(self._chance.choice(language.remarks))
            return {"title": title, "text": remark, "format": "plain"}
        if size < 1_000:
            return {"title": title, "text": self._paragraph(language, size), "format": "markdown"}
        return {"title": title, "text": self._report(title, language, size), "format": "markdown"}

    def _paragraph(self, language: _Language, size: int) -> str:
        text = self._filled(self._chance.choice(language.sentences))
        while _bytes(text) < size:
            text += f" {self._filled(self._chance.choice(language.sentences))}"
        return text

    def _report(self, title: str, language: _Language, size: int) -> str:
        parts = [f"# {title}"]
        day = 1
        while sum(map(_bytes, parts)) < size:
            parts.append(f"## {day}")
            parts.append(self._paragraph(self._mostly(language), self._chance.randrange(200, 700)))
            parts.append(self._chance.choice((self._table, self._items, self._sign))(language))
            day += 1
        return "\n\n".join(parts) + "\n"

    def _mostly(self, language: _Language) -> _Language:
        """The note's own language, now and then another: people quote each other."""
        return self._chance.choice(self._languages) if self._chance.random() < 0.2 else language

    def _table(self, _: _Language) -> str:
        rows = [
            f"| {self._place()} | {self._whole()} | {self._value()} |"
            for _ in range(self._chance.randrange(2, 7))
        ]
        return "\n".join(["| place | n | value |", "|---|---:|---:|", *rows])

    def _items(self, language: _Language) -> str:
        drawn = self._chance.sample(language.sentences, min(3, len(language.sentences)))
        return "\n".join(f"- {self._filled(sentence)}" for sentence in drawn)

    def _sign(self, _: _Language) -> str:
        return self._filled(self._chance.choice(self._signs))

    def _filled(self, sentence: str) -> str:
        return (
            sentence.replace("{n}", self._whole()).replace("{v}", self._value()).replace("{s}", self._place())
        )

    def _whole(self) -> str:
        return str(self._chance.randrange(2, 400))

    def _value(self) -> str:
        return f"{self._chance.uniform(0.1, 40):.1f}"

    def _place(self) -> str:
        return self._chance.choice(self._places)


def text() -> str:
    """The file's content."""
    return "".join(json.dumps(note, ensure_ascii=False) + "\n" for note in _Composer().notes())


def _bytes(text: str) -> int:
    return len(text.encode())


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
