"""One run of the command line: parse, run, and turn whatever goes wrong into a message and an exit code."""

import difflib
import os
import sys
import traceback
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cyclopts import CycloptsError, UnknownCommandError

from oncebox_operate import app, failures, output
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.failures import Failure
from oncebox_operate.up import state_file
from oncebox_operate.up.state_file import RunningUp

_PREFIX: Final = "ONCEBOX_"
_DATABASE: Final = "ONCEBOX_DATABASE_URL"


def run(tokens: Sequence[str]) -> int:
    """Run one command; the answer is its exit code. A user's mistake never shows a traceback."""
    _forget_blank_variables()
    try:
        try:
            with _variables_of_running_up(tokens):
                code = app.build(tokens)(
                    tokens, exit_on_error=False, print_error=False, result_action="return_value"
                )
            sys.stdout.flush()
            return int(code or ExitCode.OK)
        except KeyboardInterrupt:
            output.stderr().print("Interrupted.")
            return ExitCode.INTERRUPTED
        except BrokenPipeError:
            raise
        except Exception as error:
            return _failed(error, tokens)
    except BrokenPipeError:
        # The reader (head, less) has enough; the interpreter must not complain when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK


def _forget_blank_variables() -> None:
    """A blank variable is one that is not set: compose files and shells leave many of those."""
    for name in [
        name for name, value in os.environ.items() if name.startswith(_PREFIX) and not value.strip()
    ]:
        del os.environ[name]


@contextmanager
def _variables_of_running_up(tokens: Sequence[str]) -> Generator[None]:
    """Without variables of their own, commands and the processes that they start work with the `up` that runs.

    Whoever names a database means another installation: nothing of it is mixed with this one.
    """
    command = app.named_by(tokens)
    named = {token.partition("=")[0] for token in tokens}
    if command is None or command.alone or "--database-url" in named or _DATABASE in os.environ:
        yield
        return
    found = state_file.find(Path.cwd(), os.environ)
    taken = found.places.variables() if isinstance(found, RunningUp) else {}
    missing = {name: value for name, value in taken.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            os.environ.pop(name, None)


def _failed(error: Exception, tokens: Sequence[str]) -> int:
    failure = _failure(error)
    if _asked("--traceback", "ONCEBOX_TRACEBACK", tokens):
        traceback.print_exception(error)
    output.print_failure(failure, as_json=_asked("--json", "ONCEBOX_JSON", tokens))
    sys.stdout.flush()
    return failure.code


def _failure(error: Exception) -> Failure:
    match error:
        case Failure():
            return error
        case UnknownCommandError():
            return _unknown_command(error)
        case CycloptsError():
            return failures.usage(_one_line(str(error)), f"See: {_help_of(error)}")
        case ImportError():
            return _not_installed(error)
        case UnicodeEncodeError():
            # Arguments and variables are bytes: what of them is no UTF-8 shows where it is used as text.
            return failures.usage(
                "An argument or a variable holds bytes that are no text in UTF-8.",
                "Check the characters beyond ASCII, and the locale (LANG, LC_ALL).",
            )
        case _:
            # Imported here: help and usage errors need not wait for the outbox and its libraries.
            from oncebox_operate import outbox_failures

            return outbox_failures.of_outbox(error) or _unexpected(error)


def _unknown_command(error: UnknownCommandError) -> Failure:
    """Told from the table of commands: the library would import every one of them to do so."""
    before = tuple(error.command_chain or ())
    typed = (error.unused_tokens or ["?"])[0]
    depth = len(before)
    names = sorted({command.path[depth] for command in app.COMMANDS if _under(command.path, before)})
    close = difflib.get_close_matches(typed, names, n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    place = " ".join(["oncebox", *before])
    return failures.usage(
        f"There is no command {typed!r} in {place}.{meant}", f"There are: {', '.join(names)}"
    )


def _under(path: tuple[str, ...], before: tuple[str, ...]) -> bool:
    return len(path) > len(before) and path[: len(before)] == before


def _not_installed(error: ImportError) -> Failure:
    """A command whose extra is missing from this installation."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return Failure(
        ExitCode.ERROR,
        "not_installed",
        f"This command needs a package that is not installed ({cause}).",
        "Install all of them: pip install 'oncebox[all]'",
    )


def _unexpected(error: Exception) -> Failure:
    lines = str(error).strip().splitlines()
    return Failure(
        ExitCode.ERROR,
        "internal",
        f"This is a fault of Oncebox ({type(error).__name__}: {lines[0] if lines else 'no message'}).",
        "Run it again with ONCEBOX_TRACEBACK=1 and report what it prints.",
    )


def _help_of(error: CycloptsError) -> str:
    return " ".join(["oncebox", *(error.command_chain or ()), "--help"])


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _asked(flag: str, variable: str, tokens: Sequence[str]) -> bool:
    """Whether a flag of `Output` is meant, for a command line that may not be parseable."""
    words = os.environ.get(variable, "").lower()
    return flag in tokens or words in {"1", "true", "t", "yes", "y"}
