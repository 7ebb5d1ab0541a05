"""What `oncebox up` shows: to a terminal with one live line, else in plain lines. Never a secret."""

import threading
import time
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from oncebox_operate.durations import shown
from oncebox_operate.output import plain
from oncebox_operate.up.live_counts import Counts
from oncebox_operate.up.state_file import Places

_TITLE_WIDTH: Final = 14
_PLAIN_EVERY_S: Final = 10.0
"""Without a terminal the live line is printed when it changed, and no oftener than this."""


class Screen:
    """A Reporter on a console. Whoever listens may go away: what cannot be shown is dropped."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._lock = threading.Lock()
        self._starting: list[str] = []
        self._last: Text | None = None
        self._printed_at = 0.0
        self._muted = False

    def begin(self, data: str) -> None:
        """The first line."""
        self._print(Text("Oncebox starts. Its data is in ").append(plain(data), "bold"))

    def starting(self, part: str) -> None:
        self._starting.append(part)
        self._show(Text(f"  … {', '.join(self._starting)}", "dim"))

    def ready(self, part: str, seconds: float, detail: str) -> None:
        self._starting.remove(part)
        line = Text("  ✓ ", "green").append(f"{part:<{_TITLE_WIDTH}}", "default")
        self._print(line.append(f"{shown(seconds):>8}   ", "dim").append(plain(detail), "default"))

    def said(self, message: str) -> None:
        first, *rest = message.splitlines()
        self._print(Text(f"{time.strftime('%H:%M:%S')} ", "dim").append(plain(first), "yellow"))
        for line in rest:
            self._print(Text(plain(line), "dim"))

    def stopping(self, part: str) -> None:
        self._show(Text(f"  … {part}", "dim"))

    def stopped(self, part: str, seconds: float, detail: str) -> None:
        line = Text("  ✓ " if not detail else "  ! ", "green" if not detail else "yellow")
        self._print(
            line.append(f"{part:<{_TITLE_WIDTH}}", "default").append(f"{shown(seconds):>8}   {detail}", "dim")
        )

    def up(self, places: Places, seconds: float, command: str) -> None:
        """All is ready: who you are, where things are, and what to type next."""
        self._show(Text())
        rows = (
            ("you are", f"{places.tenant}/{places.principal}, and may write into {places.folder}"),
            ("note service", f"{places.notes_url}   (its API: {places.notes_url}/openapi.json)"),
            ("data", f"{places.data}   (it stays)"),
            ("logs", f"{places.data}/logs"),
        )
        self._print(Text(f"\nReady after {shown(seconds)}.", "bold green"))
        for name, value in rows:
            self._print(Text(f"  {name:<{_TITLE_WIDTH}}", "dim").append(plain(value), "default"))
        self._print(Text("\nIn another terminal, with no variable set:"))
        for words in (
            f'enqueue --operation-id note-7 --folder {places.folder} --title "Finding 7" '
            '--text "Reef B recovers faster."',
            "wait note-7",
            "verify",
        ):
            self._print(Text(f"  {command} {words}", "bold"))
        self._print(
            Text("\nCtrl-C finishes what is under way, and ends everything. The data stays.\n", "dim")
        )

    def live(self, counts: Counts | None) -> None:
        """The one line that changes."""
        if counts is None:
            self._show(Text("The database does not answer.", "yellow"), lasting=True)
            return
        unknown = "bold yellow" if counts.unknown else "default"
        oldest = shown(counts.oldest_s) if counts.open else "-"
        line = Text(f"open {counts.open:,}  ", "default").append(f"unknown {counts.unknown:,}  ", unknown)
        self._show(line.append(f"oldest {oldest}  saved {counts.saved:,}", "default"), lasting=True)

    def mute(self) -> None:
        """Show nothing any more."""
        self.close()
        self._muted = True

    def close(self) -> None:
        """Leave the terminal as it was."""
        with self._lock:
            live, self._live = self._live, None
            try:
                if live is not None:
                    live.stop()
            except OSError:
                return

    def _print(self, line: Text) -> None:
        if self._muted:
            return
        with self._lock:
            try:
                # soft_wrap: the terminal breaks long lines, so that a command can be copied whole.
                self._console.print(line, soft_wrap=True)
            except OSError:
                return

    def _show(self, line: Text, *, lasting: bool = False) -> None:
        """Replace the live line; without a terminal, print it when it is worth it."""
        if self._muted:
            return
        if not self._console.is_terminal:
            due = time.monotonic() - self._printed_at > _PLAIN_EVERY_S
            if lasting and due and line != self._last:
                self._last, self._printed_at = line, time.monotonic()
                self._print(line)
            return
        with self._lock:
            try:
                if self._live is None:
                    self._live = Live(
                        line,
                        console=self._console,
                        auto_refresh=False,
                        transient=True,
                        redirect_stdout=False,
                        redirect_stderr=False,
                    )
                    self._live.start()
                self._live.update(line, refresh=True)
            except OSError:
                return
