"""`prune`: forget what need not be kept, in both databases."""

from collections.abc import Callable
from typing import Annotated, Final, cast

from cyclopts import Parameter
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text
from sqlalchemy import Engine

from oncebox_operate import note_process, options, sender, shapes
from oncebox_operate.durations import shown
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.failures import Failure
from oncebox_operate.options import DatabaseUrl, NotesDatabaseUrl
from oncebox_operate.output import AS_TEXT, Output, stderr
from oncebox_outbox import pruning
from oncebox_outbox.pruning import Pruned

_DEFAULT_AGE_S: Final = 30 * 86_400.0


def prune(
    *,
    older_than: Annotated[
        float,
        Parameter(
            name="--older-than",
            env_var="ONCEBOX_PRUNE_OLDER_THAN",
            converter=options.to_seconds,
            show_default=lambda seconds: f"{seconds / 86_400:g}d",
            help="What was settled longer ago than this: 30d, 12h.",
        ),
    ] = _DEFAULT_AGE_S,
    dry_run: Annotated[
        bool,
        Parameter(
            name="--dry-run",
            env_var="ONCEBOX_PRUNE_DRY_RUN",
            show_default=False,
            negative="",
            help="Only count what would be emptied.",
        ),
    ] = False,
    database_url: DatabaseUrl = None,
    notes_database_url: NotesDatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Forget the arguments and calls of old operations.

    Name, hash, end and receipt of an operation stay for ever: it is never sent twice, whenever it is asked for again.
    What is open or needs review is left alone. With `ONCEBOX_NOTES_DATABASE_URL` the note service forgets the sealed
    keys that no request can reach any more. In small steps, safe while everything runs, and one at a time.

    * `oncebox prune --dry-run`
    * `oncebox prune --older-than 90d`
    """
    server = options.sender_server(database_url)
    notes = None if notes_database_url is None else options.notes_server(notes_database_url)
    tombstones: int | None = None
    with sender.engine(server) as connecting:
        engine = connecting.execution_options(isolation_level="AUTOCOMMIT")
        pruned = _count(engine, older_than) if dry_run else _prune(engine, older_than)
    if notes is not None and not dry_run:
        (told,) = note_process.ask(notes, "purge")
        tombstones = cast("int | None", told["purged"])  # the service's contract
    value: shapes.Pruned = {
        "operations": pruned.operations,
        "calls": None if dry_run else pruned.calls,
        "tombstones": tombstones,
        "older_than_s": older_than,
        "dry_run": dry_run,
    }
    output.data(value, lambda: Text(_sentence(value)))
    if notes is None:
        output.note("The note service's database is left alone: ONCEBOX_NOTES_DATABASE_URL is not set.")
    elif tombstones is None and not dry_run:
        output.note("The note service left its sealed keys alone: another purge is running there.")
    return ExitCode.OK


def _count(engine: Engine, older_than_s: float) -> Pruned:
    return Pruned(pruning.prunable(engine, older_than_s=older_than_s), 0)


def _prune(engine: Engine, older_than_s: float) -> Pruned:
    pruned = _with_progress(
        engine, older_than_s, lambda told: pruning.prune(engine, older_than_s=older_than_s, progress=told)
    )
    if pruned.busy:
        raise Failure(
            ExitCode.ERROR,
            "busy",
            "Nothing was pruned: another prune is running on this database.",
            "When it is done, there is nothing left to do. To look: oncebox prune --dry-run",
        )
    return pruned


def _with_progress(
    engine: Engine, older_than_s: float, run: Callable[[Callable[[int], None] | None], Pruned]
) -> Pruned:
    if not stderr().is_terminal:
        return run(None)
    columns = TextColumn("Pruning"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=stderr(), transient=True) as progress:
        task = progress.add_task("", total=pruning.prunable(engine, older_than_s=older_than_s))
        return run(lambda done: progress.update(task, completed=done))


def _sentence(value: shapes.Pruned) -> str:
    age = f"settled more than {shown(value['older_than_s'])} ago"
    if value["dry_run"]:
        if not value["operations"]:
            return f"There is nothing to prune: no operation that was {age} still has its arguments."
        return f"{value['operations']:,} operations, {age}, would lose their arguments. Nothing was changed."
    sealed = (
        "" if value["tombstones"] is None else f", and {value['tombstones']:,} sealed keys at the receiver"
    )
    return f"Pruned {value['operations']:,} operations and {value['calls']:,} calls{sealed}."
