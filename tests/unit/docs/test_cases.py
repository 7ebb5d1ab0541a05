"""docs/cases.md names every case, and tests that exist and say that they cover it."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "cases.md"

# Written out: a case must not leave the page unseen.
NUMBERS = {
    "F": (
        "1 3 4 5 6 7 9 10 11 13 14 15 17 18 19 20 21 23 25 26 28 30 31 32 33 34 35 37 39 40 41 43 "
        "44 45 47 48 51 54 55 56 57 58 59 60 62"
    ),
    "R": (
        "1 2 3 4 5 6 7 8 9 11 12 14 15 17 18 19 22 23 24 25 26 28 29 31 32 34 35 36 38 39 41 42 "
        "43 44 45 46 47 48 50 52"
    ),
    "C": (
        "1 2 3 4 6 7 8 9 10 13 15 17 18 19 20 21 22 23 24 25 27 28 29 30 31 32 33 34 35 36 37 39 "
        "40 41 42 43 44 45 47 48 49 50 51 52"
    ),
}
CASES = [f"{part}{number}" for part, numbers in NUMBERS.items() for number in numbers.split()]
# Nothing of these can happen before their part is built.
WITHOUT_A_TEST = {"C47"}

_ROW = re.compile(r"^\| ([FRC]\d+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
_WAITING = re.compile(r"^- ([FRC]\d+): .+$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> dict[str, list[tuple[str, str]]]:
    """The tests that each case's row names: file and function."""
    return {case: _TEST.findall(shown) for case, _, _, shown in _ROW.findall(_page())}


def waiting() -> set[str]:
    """The cases of which something waits for a part that is not built."""
    _, _, after = _page().partition("## Not yet")
    return set(_WAITING.findall(after))


@cache
def _page() -> str:
    return PAGE.read_text(encoding="utf-8")


@cache
def _functions(file: str) -> dict[str, str]:
    """The source of each test function of a file, with its decorators."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lines = text.splitlines()
    return {
        node.name: "\n".join(
            lines[min(part.lineno for part in (*node.decorator_list, node)) - 1 : node.end_lineno]
        )
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    }


def test_every_case_is_on_the_page_and_none_is_made_up() -> None:
    """In a row, or in the list of what is not built."""
    found = [case for case, *_ in _ROW.findall(_page())]
    assert found == [case for case in CASES if case not in WITHOUT_A_TEST], "each once, in order"
    assert waiting() >= WITHOUT_A_TEST
    assert waiting() <= set(CASES)


def test_each_case_names_tests_that_exist_and_name_it() -> None:
    """A test that was renamed, or no longer says which case it covers, fails here."""
    faults: list[str] = []
    for case, named in rows().items():
        if not named:
            faults.append(f"{case} names no test")
        for file, function in named:
            source = _functions(file).get(function) if (ROOT / file).is_file() else None
            if source is None:
                faults.append(f"{case}: there is no {file}::{function}")
            elif not re.search(rf"(?i)(?<![a-z0-9]){case}(?![a-z0-9])", source):
                faults.append(f"{case}: {file}::{function} does not name it")
    assert faults == []
