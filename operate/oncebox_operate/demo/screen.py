"""What a demonstration shows: its story, a table that lives, and the proof."""

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from oncebox_models.states import State
from oncebox_operate import views
from oncebox_operate.demo.proof import Proof
from oncebox_operate.demo.script import FaultKind, Script
from oncebox_operate.demo.strikes import Struck
from oncebox_operate.durations import shown
from oncebox_operate.output import plain

_NEWS: Final = 6
"""Lines of news under the live table."""
_PLAIN_EVERY_S: Final = 5.0
"""Without a terminal the table is one line, printed this often."""


@dataclass(frozen=True, slots=True)
class Look:
    """How far it is. `open`: operations by their state."""

    elapsed_s: float
    committed: int
    rolled_back: int
    saved: int
    open: Mapping[State, int]
    faults: Mapping[FaultKind, Struck]


class DemoScreen:
    """Also the Reporter of the stage: what starts is one line that changes, what ends and begins again is news."""

    def __init__(self, console: Console, script: Script) -> None:
        self._console = console
        self._script = script
        self._news: deque[str] = deque(maxlen=_NEWS)
        self._live: Live | None = None
        self._lock = threading.Lock()
        self._printed_at = 0.0
        self._table: RenderableType = Text()

    def starting(self, part: str) -> None:
        self._show(Text(f"Setting up: {part} …", "dim"))

    def ready(self, part: str, seconds: float, detail: str) -> None:
        """Not worth a line."""

    def said(self, message: str) -> None:
        """News: under the table, or as a line."""
        line = f"{time.strftime('%H:%M:%S')} {plain(message)}"
        self._news.append(line)
        if not self._console.is_terminal:
            self.line(line)

    def stopping(self, part: str) -> None:
        self._show(Text(f"Ending: {part} …", "dim"))

    def stopped(self, part: str, seconds: float, detail: str) -> None:
        """Not worth a line."""

    def line(self, text: str, style: str = "") -> None:
        """A line that stays."""
        with self._lock:
            self._console.print(Text(plain(text), style), soft_wrap=True)

    def look(self, look: Look) -> None:
        """The live table."""
        if self._console.is_terminal:
            news = [Text(line, "dim") for line in self._news]
            self._show(Group(_numbers(look, self._script), Text(), _faults(look.faults), Text(), *news))
        elif time.monotonic() - self._printed_at > _PLAIN_EVERY_S:
            self._printed_at = time.monotonic()
            self.line(_in_one_line(look, self._script))

    def proof(self, proof: Proof) -> None:
        """The table at the end, and the verdict."""
        self.close()
        table = _grid()
        for name, number, about in _rows(proof):
            table.add_row(Text(f"  {name}"), Text(f"{number:,}", "bold"), Text(about, "dim"))
        doubts = proof.doubts(self._script)
        self._console.print(Text("\nThe proof", "bold"))
        self._console.print(table)
        self._console.print(Text())
        self._console.print(_faults(proof.faults))
        self._console.print(Text())
        for doubt in doubts:
            self.line(f"  {doubt}", "red")
        took = shown(proof.seconds)
        if doubts:
            self.line(f"Not as promised ({took}).", "bold red")
        else:
            self.line(
                f"Every operation ended with exactly one note: none lost, none twice ({took}).", "bold green"
            )

    def close(self) -> None:
        """The terminal as it was."""
        with self._lock:
            live, self._live = self._live, None
            if live is not None:
                live.stop()

    def _show(self, what: RenderableType) -> None:
        if not self._console.is_terminal:
            return
        with self._lock:
            if self._live is None:
                self._live = Live(
                    what,
                    console=self._console,
                    auto_refresh=False,
                    transient=True,
                    redirect_stdout=False,
                    redirect_stderr=False,
                )
                self._live.start()
            self._live.update(what, refresh=True)


def _numbers(look: Look, script: Script) -> RenderableType:
    table = _grid()
    still_open = sum(look.open.values())
    states = Text("  ").join(
        Text(f"{state} {count}", views.STYLES[state]) for state, count in look.open.items() if count
    )
    table.add_row("  committed", f"{look.committed:,}", Text(f"of {script.ops:,}", "dim"))
    table.add_row("  rolled back", f"{look.rolled_back:,}", "")
    table.add_row("  saved", Text(f"{look.saved:,}", "green"), "")
    table.add_row("  open", f"{still_open:,}", states)
    table.add_row("  elapsed", f"{look.elapsed_s:.0f} s", "")
    return table


def _faults(faults: Mapping[FaultKind, Struck]) -> RenderableType:
    if not faults:
        return Text("  nothing is broken (--faults none)", "dim")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("  what is broken")
    table.add_column("times", justify="right")
    table.add_column("with operations in flight", justify="right")
    for kind, struck in faults.items():
        table.add_row(f"  {kind.label}", f"{struck.count}", f"{struck.in_flight}")
    return table


def _in_one_line(look: Look, script: Script) -> str:
    still_open = ", ".join(f"{state} {count}" for state, count in look.open.items() if count)
    return (
        f"{look.elapsed_s:3.0f} s  committed {look.committed} of {script.ops}, rolled back {look.rolled_back},"
        f" saved {look.saved}, open {sum(look.open.values())}{f' ({still_open})' if still_open else ''}"
    )


def _rows(proof: Proof) -> Sequence[tuple[str, int, str]]:
    return (
        ("operations", proof.operations, "committed by the agent, each with its own finding"),
        ("rolled back", proof.rolled_back, f"transactions; {proof.left_behind} of them left a trace"),
        ("saved", proof.saved, "with the receiver's receipt"),
        ("notes", proof.notes, "counted by SQL in the note service's own database"),
        ("duplicates", proof.duplicates, "second notes, counted there, too"),
        ("lost", proof.lost, "said to be saved, and not there"),
        ("unknown", proof.unknown, "still not known"),
        ("needs review", proof.needs_review, "no machine could tell"),
        ("reconciled", proof.reconciled, "once of unknown outcome, then settled by proof"),
        ("attempts", proof.attempts, "to send an operation"),
        ("replays", proof.replays, "of them found the note there already"),
    )


def _grid() -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    return table
