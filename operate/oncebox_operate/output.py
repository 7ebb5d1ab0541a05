"""Where a command's words go: data on stdout, everything else on stderr; the same data as text or as JSON."""

import json
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TextIO

from cyclopts import Group, Parameter
from rich.console import Console, RenderableType
from rich.text import Text

from oncebox_operate.failures import Failure

OUTPUT: Final = Group("Output", sort_key=90)
_PIPED_WIDTH: Final = 10_000
"""Columns of text that goes to a file or a pipe: nothing is cut or wrapped there."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The options about output that every command has."""

    json: Annotated[
        bool,
        Parameter(
            name="--json",
            env_var="ONCEBOX_JSON",
            group=OUTPUT,
            show_default=False,
            negative="",
            help="JSON on stdout: one object, for a list one a line.",
        ),
    ] = False
    traceback: Annotated[
        bool,
        Parameter(name="--traceback", env_var="ONCEBOX_TRACEBACK", group=OUTPUT, show=False, negative=""),
    ] = False

    def data(self, value: Mapping[str, object], text: Callable[[], RenderableType]) -> None:
        """Print the answer: `value` as one line of JSON, or what `text` returns."""
        if self.json:
            sys.stdout.write(json_line(value))
        else:
            _print(stdout(), text())
        # A reader that follows (`--watch`, a pipe) sees it now.
        sys.stdout.flush()

    def lines(self, values: Sequence[Mapping[str, object]], text: Callable[[], RenderableType]) -> None:
        """Print a list: each of `values` as a line of JSON, or all of them as what `text` returns."""
        if self.json:
            sys.stdout.writelines(map(json_line, values))
        else:
            _print(stdout(), text())
        sys.stdout.flush()

    def note(self, message: str, style: str = "dim") -> None:
        """Say something that is not data: on stderr, in either form."""
        _print(stderr(), Text(plain(message), style))


AS_TEXT: Final = Output()


def json_line(value: Mapping[str, object]) -> str:
    """One line without spaces: a receipt inside it has the very bytes of its canonical form."""
    # What stdout cannot encode is written as \\u escapes, which mean the same.
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    line = json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":")) + "\n"
    try:
        line.encode()
    except UnicodeEncodeError:
        # An argument that is no text in this locale, told back in a message: no encoding has its characters.
        return json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n"
    return line


def stdout() -> Console:
    """The console for data. NO_COLOR and pipes are honoured."""
    return _console(sys.stdout)


def stderr() -> Console:
    """The console for progress and messages."""
    return _console(sys.stderr)


def plain(text: str) -> str:
    """Text from elsewhere, made harmless for a terminal: no escape sequence, no character that turns the line around."""
    return "".join(
        character
        if character == "\n" or unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        else f"\\u{ord(character):04x}"
        for character in text
    )


def print_failure(failure: Failure, *, as_json: bool) -> None:
    """Say why the command ended: for people on stderr, and with `as_json` as one object on stdout, too."""
    console = stderr()
    _print(console, Text("Error: ", "bold red").append(plain(failure.message), "default"))
    for fault in failure.faults:
        _print(console, Text(f"  {plain(str(fault))}"))
    for match in failure.matches:
        _print(console, Text("  " + "  ".join(plain(str(value)) for value in match.values())))
    if failure.hint:
        _print(console, Text(plain(failure.hint)))
    if as_json:
        sys.stdout.write(json_line({"error": _failure_shape(failure)}))


def _print(console: Console, what: RenderableType) -> None:
    # A line of text is left to the terminal to break: a command in it can be copied whole.
    console.print(what, soft_wrap=isinstance(what, Text))


def _failure_shape(failure: Failure) -> dict[str, object]:
    return {
        "kind": failure.kind,
        "exit_code": int(failure.code),
        "message": failure.message,
        "hint": failure.hint,
        "faults": [{"path": fault.path, "message": fault.message} for fault in failure.faults],
        "matches": list(failure.matches),
    }


def _console(stream: TextIO) -> Console:
    # Rich would cut piped tables at 80 columns, or at an exported COLUMNS.
    width = None if stream.isatty() else _PIPED_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
