"""`migrate up|status|down|sql`: the tables of both databases. The note service moves its own."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, cast

from cyclopts import Parameter
from rich.text import Text
from sqlalchemy.exc import SQLAlchemyError

from oncebox_operate import failures, migrate, note_process, options, shapes
from oncebox_operate.database_failures import Server, of_database
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.options import DatabaseUrl, NotesDatabaseUrl
from oncebox_operate.output import AS_TEXT, Output

Database = Literal["sender", "notes"]
Only = Annotated[
    Database | None,
    Parameter(name="--only", env_var="ONCEBOX_MIGRATE_ONLY", help="Only this one of the two databases."),
]


def up(
    *,
    only: Only = None,
    database_url: DatabaseUrl = None,
    notes_database_url: NotesDatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Bring both databases to this version's tables.

    Safe to repeat. The sender's tables go into the schema `oncebox`; nothing else in that database is touched. The note service's
    database is left alone when `ONCEBOX_NOTES_DATABASE_URL` is not set.

    * `oncebox migrate up`
    * `oncebox migrate up --only notes`
    """
    targets = _targets(only, database_url, notes_database_url, output)
    _print(output, (_at(target, _sender_up, "up") for target in targets))
    return ExitCode.OK


def status(
    *,
    only: Only = None,
    database_url: DatabaseUrl = None,
    notes_database_url: NotesDatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Say where both databases stand.

    Changes nothing. Exits with 8 when one of them is not at this version.

    * `oncebox migrate status --json`
    """
    targets = _targets(only, database_url, notes_database_url, output)
    found = [_at(target, _sender_status, "status") for target in targets]
    _print(output, found)
    if all(one["current"] for one in found):
        return ExitCode.OK
    output.note("Bring it to this version: oncebox migrate up")
    return ExitCode.CHECK_FAILED


def down(
    *,
    yes: Annotated[
        bool,
        Parameter(
            name="--yes",
            env_var="ONCEBOX_MIGRATE_DOWN_YES",
            show_default=False,
            negative="",
            help="Yes, remove everything that is stored.",
        ),
    ] = False,
    only: Only = None,
    database_url: DatabaseUrl = None,
    notes_database_url: NotesDatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Remove all tables of Oncebox, with what is in them.

    Every operation, receipt and note goes; there is no way back.

    * `oncebox migrate down --only sender --yes`
    """
    targets = _targets(only, database_url, notes_database_url, output)
    if not yes:
        named = " and ".join(f"{target.name} ({target.server})" for target in targets)
        raise failures.usage(
            f"This removes everything that Oncebox stores in: {named}.", "If you mean it, say so: --yes"
        )
    _print(output, (_at(target, _sender_down, "down") for target in targets))
    return ExitCode.OK


def sql(*, output: Output = AS_TEXT) -> ExitCode:
    """Print the SQL of a first `migrate up` of the sender.

    For a person who applies it by hand.

    * `oncebox migrate sql | less`
    """
    value: shapes.MigrationSql = {"database": "sender", "sql": migrate.sql()}
    output.data(value, lambda: Text(value["sql"].rstrip()))
    return ExitCode.OK


@dataclass(frozen=True, slots=True)
class _Target:
    name: Database
    server: Server


def _targets(only: Database | None, sender: str | None, notes: str | None, output: Output) -> list[_Target]:
    targets: list[_Target] = []
    if only != "notes":
        targets.append(_Target("sender", options.sender_server(sender)))
    if only == "notes" or (only is None and notes is not None):
        targets.append(_Target("notes", options.notes_server(notes)))
    if only is None and notes is None:
        output.note("The note service's database is left alone: ONCEBOX_NOTES_DATABASE_URL is not set.")
    return targets


def _at(target: _Target, sender: Callable[[str], None], action: str) -> shapes.Migrated:
    match target.name:
        case "sender":
            return _on_sender(target.server, sender)
        case "notes":
            return _on_notes(target.server, action)


def _on_sender(server: Server, act: Callable[[str], None]) -> shapes.Migrated:
    try:
        act(server.libpq)
        found = migrate.status(server.libpq)
    except SQLAlchemyError as error:
        if failure := of_database(error, server):
            raise failure from error
        raise
    return {
        "database": "sender",
        "revision": found.current,
        "head": found.head,
        "current": found.up_to_date,
    }


def _sender_up(url: str) -> None:
    migrate.up(url)


def _sender_down(url: str) -> None:
    migrate.down(url)


def _sender_status(_: str) -> None:
    """Nothing to do before the look that every action ends with."""


def _on_notes(server: Server, action: str) -> shapes.Migrated:
    found = _notes_status(server) if action != "up" else _notes(server, "up")
    # The service goes down one revision at a time.
    while action == "down" and found["revision"] is not None:
        found = _notes(server, "down")
    return found


def _notes_status(server: Server) -> shapes.Migrated:
    return _notes(server, "status")


def _notes(server: Server, action: str) -> shapes.Migrated:
    (found,) = note_process.ask(server, "migrate", action, allowed=[ExitCode.CHECK_FAILED])
    return cast("shapes.Migrated", {"database": "notes", **found})  # the keys of the service's contract


def _print(output: Output, found: Iterable[shapes.Migrated]) -> None:
    for one in found:
        output.data(one, lambda one=one: _line(one))


def _line(one: shapes.Migrated) -> Text:
    where = f"{one['database']}: "
    if one["revision"] is None:
        return Text(where).append("no tables", "yellow")
    if one["current"]:
        return Text(where).append(f"at {one['revision']}, up to date", "green")
    return Text(where).append(f"at {one['revision']}; this version wants {one['head']}", "yellow")
