"""`verify`: the sender's ledger against the receiver's notes."""

import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Annotated, Final

import psycopg
from cyclopts import Parameter
from pydantic import SecretStr
from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from oncebox_destinations.reads import ReadRefused, ReceiverUnreachable
from oncebox_destinations.settings import NoteServiceSettings, WrongSettings
from oncebox_models.states import LIVE_STATES, State
from oncebox_operate import failures, options, sender, shapes
from oncebox_operate.database_failures import Server, of_database
from oncebox_operate.durations import shown
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.failures import Failure
from oncebox_operate.ledger import NotesLedger
from oncebox_operate.note_reading import NoteReading
from oncebox_operate.options import DatabaseUrl, NotesDatabaseUrl, NotesUrl
from oncebox_operate.output import AS_TEXT, Output, plain, stderr
from oncebox_operate.verification import Reads, Verification, Verified
from oncebox_operate.verification_rules import Found

_LISTED: Final = 100
"""Most problems that are listed; all are counted."""
Token = Annotated[
    str | None,
    Parameter(
        name="--token",
        env_var="ONCEBOX_TOKEN",
        group=options.WHERE,
        help="With --deep: a token that may act for the principals. Better given as a variable.",
    ),
]


def verify(
    *,
    deep: Annotated[
        bool,
        Parameter(
            name="--deep",
            env_var="ONCEBOX_VERIFY_DEEP",
            show_default=False,
            negative="",
            help="Also read each saved note by its id over HTTP.",
        ),
    ] = False,
    destination: Annotated[
        str,
        Parameter(name="--destination", env_var="ONCEBOX_DESTINATION", help="Whose operations are compared."),
    ] = options.DEFAULT_DESTINATION,
    database_url: DatabaseUrl = None,
    notes_database_url: NotesDatabaseUrl = None,
    notes_url: NotesUrl = None,
    token: Token = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Compare the ledger with the receiver's notes.

    None lost, none twice, none in spite of "not saved"; hashes, versions, folders and texts equal; each written under
    a grant that was in force. The notes are counted by plain SQL on the note service's database. Safe while everything
    runs. Exits with 8 and names the operation when anything is off.

    * `oncebox verify`
    * `oncebox verify --deep --json`
    """
    started = time.monotonic()
    server, notes = options.sender_server(database_url), options.notes_server(notes_database_url)
    with ExitStack() as stack:
        engine = stack.enter_context(sender.engine(server))
        ledger = stack.enter_context(_ledger(notes))
        reads = stack.enter_context(_reads(notes_url, token)) if deep else None
        verified = _run(Verification(engine, destination, ledger, reads, lambda _: None))
    value = _shape(verified, deep, time.monotonic() - started)
    output.data(value, lambda: _view(value))
    return ExitCode.OK if verified.ok else ExitCode.CHECK_FAILED


def _run(verification: Verification) -> Verified:
    if not stderr().is_terminal:
        return verification.run()
    columns = TextColumn("Comparing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=stderr(), transient=True) as progress:
        task = progress.add_task("", total=verification.total())
        return Verification(
            verification.engine,
            verification.destination,
            verification.ledger,
            verification.reads,
            lambda count: progress.advance(task, count),
        ).run()


@contextmanager
def _ledger(server: Server) -> Generator[NotesLedger]:
    try:
        with NotesLedger.connected(server.libpq) as ledger:
            yield ledger
    except psycopg.errors.UndefinedTable:
        raise Failure(
            ExitCode.ERROR,
            "schema_missing",
            f"The database at {server} has no tables of the note service.",
            "Check ONCEBOX_NOTES_DATABASE_URL, or create them: oncebox migrate up --only notes",
        ) from None
    except psycopg.Error as error:
        if failure := of_database(error, server):
            raise failure from error
        raise


@contextmanager
def _reads(notes_url: str | None, token: str | None) -> Generator[Reads]:
    if notes_url is None:
        raise failures.missing_variable(
            "ONCEBOX_NOTES_URL", "--notes-url", "the note service", "http://127.0.0.1:8320"
        )
    if token is None:
        raise failures.usage(
            "ONCEBOX_TOKEN is not set: the note service hands notes out to those who may read them.",
            "export ONCEBOX_TOKEN=$(oncebox token create --tenant demo --principal verifier --delegate)",
        )
    try:
        with NoteReading.connected(NoteServiceSettings(notes_url, SecretStr(token))) as reading:
            yield reading
    except WrongSettings as error:
        raise failures.usage(f"ONCEBOX_NOTES_URL or ONCEBOX_TOKEN is wrong: {error}.") from None
    except ReceiverUnreachable as error:
        raise Failure(ExitCode.UNREACHABLE, "unreachable", f"{error}.") from error
    except ReadRefused as error:
        hint = "Check ONCEBOX_TOKEN and ONCEBOX_NOTES_URL."
        raise Failure(ExitCode.ERROR, "read_refused", f"{error}.", hint) from error


def _shape(verified: Verified, deep: bool, seconds: float) -> shapes.Verified:
    states = verified.states
    return {
        "operations": verified.operations,
        "saved": states[State.SAVED],
        "refused": states[State.REFUSED],
        "not_saved": states[State.NOT_SAVED],
        "needs_review": states[State.NEEDS_REVIEW],
        "unknown": states[State.UNKNOWN],
        "open": sum(states[state] for state in LIVE_STATES),
        "notes": verified.notes,
        "foreign_notes": verified.foreign,
        "receiver_notes": verified.receiver_notes,
        "lost": verified.lost,
        "duplicates": verified.duplicates,
        "contradictions": verified.count(Found.CONTRADICTION),
        "mismatches": verified.count(Found.MISMATCH, Found.UNREADABLE),
        "not_permitted": verified.count(Found.NOT_PERMITTED),
        "orphans": verified.count(Found.ORPHAN),
        "violations": verified.violations,
        "deep": deep,
        "read": verified.read,
        "problems": [
            {
                "found": str(problem.found),
                "operation_id": problem.operation_id,
                "id": None if problem.id is None else str(problem.id),
                "detail": problem.detail,
            }
            for problem in verified.problems[:_LISTED]
        ],
        "seconds": round(seconds, 3),
        "ok": verified.ok,
    }


def _view(value: shapes.Verified) -> RenderableType:
    counts = Table.grid(padding=(0, 2, 0, 0))
    counts.add_column()
    counts.add_column(justify="right")
    counts.add_column()
    wrong = ("lost", "duplicates", "contradictions", "mismatches", "not_permitted", "orphans", "violations")
    for name, number, about in _rows(value):
        style = "bold red" if name in wrong and number else ""
        counts.add_row(Text(f"  {name}", "dim"), Text(f"{number:,}", style), Text(about, "dim"))
    return Group(counts, *_problem_lines(value), _verdict(value))


def _rows(value: shapes.Verified) -> list[tuple[str, int, str]]:
    rows = [
        ("operations", value["operations"], "in the sender's ledger"),
        ("saved", value["saved"], "with a receipt"),
        ("refused", value["refused"], ""),
        ("not_saved", value["not_saved"], ""),
        ("open", value["open"], f"{value['unknown']:,} of unknown outcome"),
        ("needs_review", value["needs_review"], ""),
        ("notes", value["notes"], "counted in the receiver's database for these operations"),
        ("foreign_notes", value["foreign_notes"], "written there by others"),
        ("lost", value["lost"], "said to be saved, and no note"),
        ("duplicates", value["duplicates"], "second notes for one operation"),
        ("contradictions", value["contradictions"], "said never to be saved, and a note"),
        ("mismatches", value["mismatches"], "another text, hash, version, folder or record"),
        ("not_permitted", value["not_permitted"], "written without a grant in force"),
        ("orphans", value["orphans"], "open, and nothing would move them on"),
        ("violations", value["violations"], "contradictions that workers recorded"),
    ]
    return [*rows, ("read", value["read"], "notes read by id over HTTP")] if value["deep"] else rows


def _problem_lines(value: shapes.Verified) -> list[Text]:
    lines = [
        Text(plain(f"{problem['operation_id'] or '?'}: {problem['found']}: {problem['detail']}"), "red")
        for problem in value["problems"]
    ]
    return [Text(), *lines, Text()] if lines else []


def _verdict(value: shapes.Verified) -> Text:
    if not value["ok"]:
        return Text("Something is off. Look at an operation with: oncebox show OPERATION", "bold red")
    if not value["operations"]:
        return Text("There are no operations yet. Enqueue one: oncebox enqueue --help")
    took = shown(value["seconds"])
    still_open = f" {value['open']:,} still open: oncebox lag" if value["open"] else ""
    return Text(f"All good: none lost, none twice, none in spite of a no ({took}).{still_open}", "bold green")
