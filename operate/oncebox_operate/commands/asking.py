"""`status`, `wait`, `show`, `list`: what is known of operations. None of these changes anything."""

from typing import Annotated, Literal
from uuid import UUID

from cyclopts import Parameter

from oncebox_models.states import State
from oncebox_operate import exit_codes, failures, options, sender, shaping, views
from oncebox_operate.durations import shown
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.options import ANY_PARTY, DEFAULT_WAIT_S, DatabaseUrl, OperationName, Scope, WaitTimeout
from oncebox_operate.output import AS_TEXT, Output, stderr
from oncebox_outbox import listing, waiting
from oncebox_outbox.listing import Filter

StateName = Literal[
    "pending", "sending", "retrying", "unknown", "saved", "refused", "not_saved", "needs_review"
]


def status(
    id: OperationName,
    /,
    *,
    scope: Scope = ANY_PARTY,
    database_url: DatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Say what is known of an operation.

    The first words decide: `Saved`, `NOT SENT YET`, `NOT CONFIRMED YET`, `OUTCOME UNKNOWN`, `REFUSED`, `NOT SAVED`.
    Exits with 0 for saved and for what is on its way, 5 when the outcome is unknown, 6 for refused and not saved.

    * `oncebox status note-7`
    * `oncebox status note-7 --tenant demo --json`
    """
    with sender.engine(options.sender_server(database_url)) as engine, engine.connect() as connection:
        known = sender.the_operation(connection, id, scope)
    output.data(shaping.operation(known), lambda: views.operation(known))
    return exit_codes.of_state(known.state)


def wait(
    id: OperationName,
    /,
    *,
    timeout: WaitTimeout = DEFAULT_WAIT_S,
    scope: Scope = ANY_PARTY,
    database_url: DatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Wait until an operation is settled.

    Exits with 0 when it is saved, 6 when it is refused or not saved. When the time is up: 5 if the outcome is unknown
    (or a person must decide), else 7. The operation goes on whatever `wait` exits with.

    * `oncebox wait note-7`
    * `oncebox wait note-7 --timeout 5m --json`
    """
    with sender.engine(options.sender_server(database_url)) as engine:
        with engine.connect() as connection:
            known = sender.the_operation(connection, id, scope)
        if not known.final and timeout > 0:
            with stderr().status(
                f"Waiting up to {shown(timeout)} for {known.operation_id}, which is {known.state}"
            ):
                known = waiting.wait(
                    engine, known.operation_id, timeout_s=timeout, scope=sender.scope_of(known)
                )
    output.data(shaping.operation(known), lambda: views.operation(known))
    code = exit_codes.of_waited(known.state)
    if code is ExitCode.WAIT_TIMED_OUT:
        output.note(
            f"Not settled within {shown(timeout)}. It goes on; look again: oncebox wait {known.operation_id}"
        )
    return code


def show(
    id: OperationName,
    /,
    *,
    scope: Scope = ANY_PARTY,
    database_url: DatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Show an operation with every call for it.

    In order of their start. A call's outcome is what its answer proved: `receipt` and `sealed` are proofs, `unknown` means that it may have
    been executed. Exits with 0.

    * `oncebox show note-7`
    * `oncebox show note-7 --json`
    """
    with sender.engine(options.sender_server(database_url)) as engine, engine.connect() as connection:
        known = sender.the_operation(connection, id, scope)
        calls = listing.timeline(connection, known.id)
    output.data(shaping.timeline(known, calls), lambda: views.timeline(known, calls))
    return ExitCode.OK


def list_operations(
    *,
    state: Annotated[
        tuple[StateName, ...],
        Parameter(
            name="--state",
            env_var="ONCEBOX_LIST_STATE",
            consume_multiple=False,
            negative="",
            show_default=False,
            help="Only in this state; give it again for more than one.",
        ),
    ] = (),
    run: Annotated[
        str | None, Parameter(name="--run", env_var="ONCEBOX_LIST_RUN", help="Only of this run of an agent.")
    ] = None,
    limit: Annotated[
        int, Parameter(name="--limit", env_var="ONCEBOX_LIST_LIMIT", help="At most so many.")
    ] = 20,
    before: Annotated[
        UUID | None,
        Parameter(
            name="--before",
            env_var="ONCEBOX_LIST_BEFORE",
            help="Only operations older than the one with this UUID: the next page.",
        ),
    ] = None,
    scope: Scope = ANY_PARTY,
    database_url: DatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """List operations, newest first.

    * `oncebox list --state unknown --state needs_review`
    * `oncebox list --run run-42 --json`
    """
    if not 1 <= limit <= 10_000:
        raise failures.usage(f"--limit is {limit}; it must be from 1 to 10000.")
    wanted = Filter(
        states=[State(name) for name in state] or None,
        tenant=scope.tenant,
        principal=scope.principal,
        destination=scope.destination,
        run=run,
        before=before,
    )
    with sender.engine(options.sender_server(database_url)) as engine, engine.connect() as connection:
        found = listing.operations(connection, wanted, limit=limit)
    if found:
        output.lines([shaping.operation(known) for known in found], lambda: views.operations(found))
    else:
        output.note(_nothing_listed(wanted))
    if len(found) == limit:
        output.note(f"There may be more; the next page: --before {found[-1].id}")
    return ExitCode.OK


def _nothing_listed(wanted: Filter) -> str:
    if wanted == Filter():
        return "There are no operations yet. Enqueue one: oncebox enqueue --help"
    return "No operation matches. Without the filters: oncebox list"
