"""Wanting again what ended without a note: a new operation that takes over whatever is not said anew."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from sqlalchemy import Connection

from oncebox_models.states import State
from oncebox_operate import exit_codes, failures, sender, statements
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.failures import Failure
from oncebox_operate.options import Scope
from oncebox_outbox import status
from oncebox_outbox.status import OperationStatus

_NAME_LENGTH: Final = 128
_NAMES_TRIED: Final = 1_000


@dataclass(frozen=True, slots=True)
class Superseded:
    """The operation that a new one replaces. arguments: what the new one takes over; empty for a saved one."""

    status: OperationStatus
    arguments: Mapping[str, object]
    ordering_key: str | None


def superseded(connection: Connection, identifier: str, scope: Scope) -> Superseded:
    """The operation that is to be replaced. Raises a failure while it may still be saved."""
    known = sender.the_operation(connection, identifier, scope)
    if not known.definite:
        raise _not_settled(known)
    row = connection.execute(statements.ARGUMENTS, {"id": known.id}).one()
    # What is saved is not wanted again: a new write for it says itself what it is.
    taken = "{}" if known.state is State.SAVED or row.arguments is None else row.arguments
    arguments = cast("Mapping[str, object]", json.loads(taken))  # frozen arguments are an object
    # Stored within its party, and given without.
    own = f"{known.tenant}/{known.principal}/"
    key = None if row.ordering_key is None else row.ordering_key.removeprefix(own)
    return Superseded(known, arguments, key)


def resend_command(connection: Connection, known: OperationStatus) -> str:
    """The command that wants again what `known` wanted, under a name that is free."""
    words = ["oncebox", "enqueue", "--operation-id", _free_name(connection, known)]
    words += ["--supersedes", str(known.id), "--tenant", known.tenant, "--principal", known.principal]
    words += ["--destination", known.destination]
    pruned = connection.execute(statements.ARGUMENTS, {"id": known.id}).one().arguments is None
    # Nothing is left to take over: the person must say it all again.
    return shlex.join(words) + (" --folder FOLDER --title TITLE --text TEXT" if pruned else "")


def _free_name(connection: Connection, known: OperationStatus) -> str:
    party = {"tenant": known.tenant, "principal": known.principal, "destination": known.destination}
    for number in range(2, _NAMES_TRIED):
        ending = f"-{number}"
        name = known.operation_id[: _NAME_LENGTH - len(ending)] + ending
        if not status.find(connection, name, **party):
            return name
    raise failures.usage(f"{known.operation_id} was replaced too often; choose a new name yourself.")


def _not_settled(known: OperationStatus) -> Failure:
    if known.state is State.NEEDS_REVIEW:
        hint = f"See what is known of it: oncebox show {known.id}"
    else:
        hint = f"Wait for it: oncebox wait {known.id}   (or give it up: oncebox cancel {known.id} --wait)"
    return Failure(
        ExitCode.OUTCOME_UNKNOWN
        if exit_codes.of_state(known.state) is ExitCode.OUTCOME_UNKNOWN
        else ExitCode.CONFLICT,
        "not_settled",
        f"Nothing was written: {known.operation_id} is {known.state} and may still be saved.",
        hint,
    )
