"""`retry`, `cancel`, `reconcile`: what a person may do about an operation. None of these spends anything."""

from typing import Annotated

from cyclopts import Parameter
from rich.text import Text
from sqlalchemy import Engine

from oncebox_operate import moves, options, sender, shapes, shaping, superseding, views
from oncebox_operate.durations import shown
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.options import (
    ANY_PARTY,
    DEFAULT_WAIT_S,
    DatabaseUrl,
    OperationName,
    Scope,
    WaitTimeout,
)
from oncebox_operate.output import AS_TEXT, Output, stderr
from oncebox_outbox import cancelling, prompting, waiting
from oncebox_outbox.prompting import Prompted
from oncebox_outbox.status import OperationStatus


def retry(
    id: OperationName,
    /,
    *,
    scope: Scope = ANY_PARTY,
    database_url: DatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Try an operation again now, not on its schedule.

    Its next call becomes due; a call that is under way is left alone, and no attempt is spent. What is settled stays
    settled: of what never was saved it prints the command that wants it again, as a new operation.
    Exits with 0 when it goes on or is saved, 6 when it never will be saved, 5 when a person must decide.

    * `oncebox retry note-7`
    * `oncebox retry note-7 --json`
    """
    with sender.engine(options.sender_server(database_url)) as engine, engine.begin() as connection:
        found = sender.the_operation(connection, id, scope)
        retried = prompting.retry(connection, found.id)
        known = sender.by_id(connection, found)
        command = superseding.resend_command(connection, known) if moves.resend(known) else None
    value: shapes.Retried = {
        **shaping.operation(known),
        "did": str(retried.did),
        "next_call": None if retried.next_call is None else str(retried.next_call),
        "waits_for": moves.waits_for(retried),
        "command": command,
    }
    output.data(value, lambda: _said(known, moves.of_retry(known, retried), command))
    if retried.did is not Prompted.SETTLED:
        output.note(f"What became of it: oncebox wait {known.id}")
    return moves.retry_code(known)


def cancel(
    id: OperationName,
    /,
    *,
    wait: Annotated[
        bool,
        Parameter(
            name="--wait",
            env_var="ONCEBOX_CANCEL_WAIT",
            show_default=False,
            negative="",
            help="Wait until it is settled, as long as --timeout allows.",
        ),
    ] = False,
    timeout: WaitTimeout = DEFAULT_WAIT_S,
    scope: Scope = ANY_PARTY,
    database_url: DatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Give an operation up.

    At once and with proof when nothing was ever sent. Otherwise its key is being sealed at the receiver, which may
    prove that it is saved: `--wait` says which. Exits with 0 when it never will be saved or is being sealed, 4 when it
    is saved; with `--wait` 5 or 7 when that is not known in time.

    * `oncebox cancel note-7`
    * `oncebox cancel note-7 --wait --timeout 2m`
    """
    with sender.engine(options.sender_server(database_url)) as engine:
        with engine.begin() as connection:
            found = sender.the_operation(connection, id, scope)
            did = cancelling.cancel(connection, found.id)
            known = sender.by_id(connection, found)
        waits = wait and moves.live(known)
        if waits:
            known = _settled(engine, known, timeout)
    value: shapes.Cancelled = {**shaping.operation(known), "did": str(did)}
    output.data(value, lambda: _said(known, moves.of_cancel(known, did)))
    if moves.live(known):
        output.note(f"Look again: oncebox wait {known.id}")
    return moves.cancel_code(known, waited=waits)


def reconcile(
    id: Annotated[
        str | None,
        Parameter(help="Only this operation: its operation_id or its UUID. [default: all that are unknown]"),
    ] = None,
    /,
    *,
    scope: Scope = ANY_PARTY,
    database_url: DatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Ask the receiver now about what is unknown.

    Operations of unknown outcome, and those that wait for our access to come back, are asked about at once and not on
    their schedule. Nothing is sent before the answer, nothing is spent, and no state changes but by the answer.

    * `oncebox reconcile`
    * `oncebox reconcile note-7`
    * `oncebox reconcile --destination notes --json`
    """
    with sender.engine(options.sender_server(database_url)) as engine, engine.begin() as connection:
        known = None if id is None else sender.the_operation(connection, id, scope)
        done = prompting.reconcile(
            connection,
            id=None if known is None else known.id,
            tenant=scope.tenant,
            principal=scope.principal,
            destination=scope.destination,
        )
    value: shapes.Reconciled = {
        "asked": done.asked,
        "unknown": done.unknown,
        "access_lost": done.access_lost,
        "id": None if known is None else str(known.id),
        "operation_id": None if known is None else known.operation_id,
        "state": None if known is None else str(known.state),
    }
    sentence = moves.of_reconcile(done, known, str(scope))
    output.data(value, lambda: Text(sentence) if known is None else _said(known, sentence))
    if done.asked:
        output.note(
            f"What became of it: oncebox wait {known.id}" if known else "What became of them: oncebox lag"
        )
    return ExitCode.OK


def _said(known: OperationStatus, sentence: str, command: str | None = None) -> Text:
    """What is known of it, what was done, and what may be typed next."""
    # One text: a table would break the command, which is to be copied whole.
    lines = [views.said(known), Text(sentence), *([Text(command, "bold")] if command else [])]
    return Text("\n").join(lines)


def _settled(engine: Engine, known: OperationStatus, timeout: float) -> OperationStatus:
    with stderr().status(f"Waiting up to {shown(timeout)} until {known.operation_id} is settled"):
        return waiting.wait(engine, known.operation_id, timeout_s=timeout, scope=sender.scope_of(known))
