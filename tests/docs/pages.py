"""What a page of documentation lets its reader type, and what it says will be seen."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_BLOCK: Final = re.compile(r"^(?:```|<!-- )(\w+)\n(.*?)^(?:```|-->)$", re.MULTILINE | re.DOTALL)
"""A fence, or a comment that begins with `sh`: what the page's story needs, and its reader does not type."""
_FILE: Final = re.compile(r"# (\w+\.py)\n")


@dataclass(frozen=True, slots=True)
class Block:
    """One step of a page.

    script: shell that does it. A Python block that begins with a file's name is written to that file, as a reader
    would do; any other is run. expected: the block `output` that follows it.
    """

    line: int
    script: str
    expected: str | None


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page that are run, in order."""
    text = page.read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(text))
    for match, after in zip(found, [*found[1:], None], strict=False):
        language, body = match[1], match[2]
        line = text.count("\n", 0, match.start()) + 1
        expected = after[2] if after is not None and after[1] == "output" else None
        match language:
            case "sh":
                yield Block(line, body, expected)
            case "python":
                yield Block(line, _python(body), expected)
            case "output" | "text" | "mermaid":
                pass
            case _:
                raise ValueError(f"{page.name}:{line}: a block of {language!r} is neither run nor compared")


def agrees(expected: str, seen: str) -> bool:
    """Whether the output is what the page shows. `…` stands for anything within a line, and a line of it alone for
    any lines; blanks at an end and the width of a gap do not count."""
    pattern = "".join(_line_pattern(line) for line in expected.splitlines())
    return re.fullmatch(pattern, "".join(f"{_narrow(line)}\n" for line in seen.splitlines())) is not None


def _python(body: str) -> str:
    named = _FILE.match(body)
    target = "" if named is None else f" > {named[1]}"
    return f"{'python -' if named is None else 'cat'}{target} <<'END_OF_PYTHON'\n{body}END_OF_PYTHON\n"


def _line_pattern(line: str) -> str:
    if line == "…":
        return r"(?:[^\n]*\n)*?"
    return "[^\n]*".join(re.escape(part) for part in _narrow(line).split("…")) + r"\n"


def _narrow(line: str) -> str:
    return re.sub(r" {2,}", "  ", line.rstrip())
