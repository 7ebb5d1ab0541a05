"""What both databases hold, in files, for whoever looks into a run that does not hold."""

import shutil
from pathlib import Path
from typing import Final, LiteralString

import psycopg

from tests.proof.chaos.parties.installation import Installation

_OF_SENDER: Final[tuple[LiteralString, ...]] = (
    "oncebox.operation",
    "oncebox.outbox_entry",
    "oncebox.call",
    "oncebox.call_outcome",
    "oncebox.violation",
    "oncebox.destination",
    "chaos_finding",
)
_OF_NOTES: Final[tuple[LiteralString, ...]] = ("note", "note_version", "operation_record")


def save_evidence(installation: Installation, folder: Path) -> None:
    """A CSV file a table, and the servers' logs. A database that does not answer has no tables here."""
    folder.mkdir()
    for database, tables in (
        (installation.sender_database, _OF_SENDER),
        (installation.notes_database, _OF_NOTES),
    ):
        # The small disk goes with the run.
        shutil.copy(database.log, folder / f"{database.name}-database.log")
        try:
            with psycopg.connect(database.url, connect_timeout=5) as connection:
                for table in tables:
                    _save(connection, table, folder / f"{table}.csv")
        except psycopg.OperationalError as error:
            (folder / f"{database.name}.error").write_text(str(error), encoding="utf-8")


def _save(connection: "psycopg.Connection[tuple[object, ...]]", table: LiteralString, file: Path) -> None:
    with file.open("wb") as output, connection.cursor() as cursor:
        statement = f"copy (select * from {table}) to stdout with (format csv, header)"
        with cursor.copy(statement) as rows:
            for block in rows:
                output.write(block)
