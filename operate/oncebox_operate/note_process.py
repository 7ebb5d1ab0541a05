"""The note service as a process. It is another party: nothing of it is imported, its JSON is what is known of it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, cast

from oncebox_operate.database_failures import Server
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.failures import Failure

_MODULE: Final = "oncebox_notes"
_DATABASE: Final = "ONCEBOX_NOTES_DATABASE_URL"
_NOT_INSTALLED: Final = "Install what the note service needs: pip install 'oncebox[notes]'"


def ask(server: Server, *action: str, allowed: Sequence[ExitCode] = ()) -> list[dict[str, object]]:
    """Run one action on the service's database and return its lines.

    `allowed` are exit codes that come with an answer all the same. Every other one raises its Failure.
    """
    done = subprocess.run(
        # -P: nothing is imported from the working folder, which may hold modules of somebody's own.
        [sys.executable, "-P", "-m", _MODULE, *action],
        env={**os.environ, _DATABASE: server.libpq},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode not in (ExitCode.OK, *allowed):
        raise _failure(done.returncode, done.stderr, server)
    return [
        cast("dict[str, object]", json.loads(line))  # the service's contract: a JSON object a line
        for line in done.stdout.splitlines()
        if line.strip()
    ]


def become_server(settings: Mapping[str, str]) -> NoReturn:
    """Turn this process into the note service, so that signals and exit codes are its own."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, "-P", "-m", _MODULE, "serve"], {**os.environ, **settings})


def _failure(returncode: int, stderr: str, server: Server) -> Failure:
    """Its exit codes are ours; its message is the last line."""
    lines = stderr.strip().splitlines()
    said = (
        lines[-1].removeprefix("oncebox-notes: ").removeprefix("the database cannot be reached: ")
        if lines
        else f"it ended with {returncode}"
    )
    if "ModuleNotFoundError" in said:
        return Failure(
            ExitCode.ERROR, "not_installed", f"The note service cannot start: {said}.", _NOT_INSTALLED
        )
    match returncode:
        case ExitCode.USAGE:
            return Failure(ExitCode.USAGE, "usage", f"The note service says: {said}.")
        case ExitCode.NOT_FOUND:
            return Failure(ExitCode.NOT_FOUND, "not_found", f"The note service says: {said}.")
        case ExitCode.UNREACHABLE:
            return Failure(
                ExitCode.UNREACHABLE,
                "unreachable",
                f"The note service cannot reach PostgreSQL at {server}: {said}.",
                f"Check that the server runs there and that the database exists. The address comes from {_DATABASE}.",
            )
        case _ if "migrate up" in said:
            return Failure(
                ExitCode.ERROR,
                "schema_missing",
                "The note service's database has no tables, or older ones.",
                "Create or upgrade them: oncebox migrate up --only notes",
            )
        case _:
            return Failure(ExitCode.ERROR, "note_service", f"The note service says: {said}.")
