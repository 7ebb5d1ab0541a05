"""docs/logs.md and the code name the same events, levels and fields."""

import ast
import re
from pathlib import Path

from oncebox_worker.events import Event
from tests.unit.worker.log_calls import Logged, logged_by

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
NEVER_LOGGED_BY_A_LOGGER = "worker_killed"


def rows(heading: str) -> list[list[str]]:
    """The cells of all rows of the tables under a heading."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in lines]


def names(cell: str) -> set[str]:
    return {name for name in re.split(r",\s*", cell) if name}


def documented(heading: str) -> dict[str, tuple[set[str], set[str]]]:
    """Levels and fields of each event under a heading."""
    return {row[0].strip("`"): (names(row[1]), names(row[2])) for row in rows(heading) if len(row) == 4}


def said(logged: dict[str, Logged]) -> dict[str, tuple[set[str], set[str]]]:
    # A traceback is passed as exc_info and comes out as `exception`.
    return {
        event: (found.levels, {"exception" if name == "exc_info" else name for name in found.fields})
        for event, found in logged.items()
    }


def test_relays_and_workers_log_what_the_page_says() -> None:
    """Event by event: name, levels, fields; the one that a signal handler writes by hand included."""
    logged = said(logged_by(ROOT / "worker" / "oncebox_worker"))
    handler = ast.parse((ROOT / "worker" / "oncebox_worker" / "draining.py").read_text(encoding="utf-8"))
    (by_hand,) = [
        ast.literal_eval(node.value.decode())
        for node in ast.walk(handler)
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes)
    ]
    logged[by_hand["event"]] = ({by_hand["level"]}, set(by_hand) - {"event", "level"})
    assert documented("Relays and workers") == logged


def test_every_event_is_logged_somewhere_and_documented() -> None:
    """`Event` holds no name that nothing logs, and the page none that is not in it."""
    logged = set(logged_by(ROOT / "worker" / "oncebox_worker")) | {NEVER_LOGGED_BY_A_LOGGER}
    assert {str(event) for event in Event} == logged == set(documented("Relays and workers"))
    assert all(event.name.lower() == event.value for event in Event)


def test_the_note_service_logs_what_the_page_says() -> None:
    """Its own list, read from its source: it shares no code with us."""
    logged = said(logged_by(ROOT / "notes" / "oncebox_notes"))
    # Logger.exception brings the traceback by itself.
    logged["operation_failed"][1].add("exception")
    assert documented("Note service") == logged


def test_the_access_log_has_the_fields_of_the_page() -> None:
    """One line a request: the members of the object that the access log writes."""
    module = ast.parse((ROOT / "notes" / "oncebox_notes" / "access_log.py").read_text(encoding="utf-8"))
    (line,) = [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.Dict) and "event" in {ast.literal_eval(key) for key in node.keys if key}
    ]
    written = {str(ast.literal_eval(key)) for key in line.keys if key} - {"ts", "event"}
    later = {
        ast.literal_eval(node.slice)
        for node in ast.walk(module)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "line"
    }
    (row,) = [row for row in rows("Note service") if row[0] == "`request`"]
    assert names(row[1]) == written | later
