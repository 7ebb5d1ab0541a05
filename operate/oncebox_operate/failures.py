"""Why a command cannot do what was asked, said so that a person can act on it, and the exit code that goes with it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.up import state_file
from oncebox_operate.up.state_file import EndedUp, RunningUp

if TYPE_CHECKING:  # it brings pydantic, which help and usage errors need not wait for
    from oncebox_models.arguments import Fault


@dataclass(eq=False)
class Failure(Exception):
    """Ends a command. `kind` is one stable word for programs; `hint` says what to type or do next.

    faults: all that is wrong with an input. matches: what an ambiguous name may have meant.
    """

    code: ExitCode
    kind: str
    message: str
    hint: str | None = None
    faults: Sequence["Fault"] = ()
    matches: Sequence[Mapping[str, object]] = ()

    def __str__(self) -> str:
        return self.message


def usage(message: str, hint: str | None = None) -> Failure:
    """A mistake in the command line, a variable or an input file."""
    return Failure(ExitCode.USAGE, "usage", message, hint)


def missing_variable(variable: str, option: str, what: str, example: str) -> Failure:
    """A setting without which the command cannot work."""
    return usage(
        f"{variable} is not set: it says where {what} is.",
        f"export {variable}={example}   (or give {option} {example})\n{_about_up()}",
    )


def _about_up() -> str:
    """Why no running `oncebox up` filled the gap."""
    match state_file.find(Path.cwd(), os.environ):
        case RunningUp(_, places):
            return f"The `oncebox up` on {places.data} is left alone, since another database is named."
        case EndedUp(pid, data):
            return f"The `oncebox up` on {data} (process {pid}) has ended. Start it again: oncebox up --data '{data}'"
        case None:
            return "Or have everything started on this machine: oncebox up"


def not_found(identifier: str, narrowed: str = "") -> Failure:
    """No operation of that name, in the scope described by `narrowed` (such as `tenant demo`)."""
    where = f" for {narrowed}" if narrowed else ""
    return Failure(
        ExitCode.NOT_FOUND,
        "not_found",
        f"There is no operation {identifier!r}{where}.",
        "See which there are: oncebox list",
    )
