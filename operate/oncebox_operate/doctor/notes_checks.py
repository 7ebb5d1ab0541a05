"""The note service's own database, for those who have its address. Its tables are asked for by its own program."""

from collections.abc import Iterator
from typing import Final

from oncebox_operate import note_process, sender
from oncebox_operate.database_failures import Server
from oncebox_operate.doctor.checks import Check, fail, ok
from oncebox_operate.exit_codes import ExitCode
from oncebox_outbox import examining

_PSQL: Final = 'psql "$ONCEBOX_NOTES_DATABASE_URL" -c'


def of_notes_database(server: Server) -> Iterator[Check]:
    """Whether it answers, keeps what it confirmed, and has its version's tables. Raises Failure."""
    with sender.engine(server) as engine, engine.connect() as connection:
        seen = examining.server(connection)
    for name in ("fsync", "full_page_writes"):
        if name in seen.forgetful:
            says = f"{name} is {seen.forgetful[name]}: a note may be lost. Set it, and restart the server"
            yield fail("notes database", says, f"{_PSQL} 'ALTER SYSTEM SET {name} = on'")
    (found,) = note_process.ask(server, "migrate", "status", allowed=[ExitCode.CHECK_FAILED])
    if found["current"]:
        yield ok(
            "notes database",
            f"PostgreSQL {seen.version.split()[0]} at {server}, revision {found['revision']}",
        )
    else:
        says = f"its tables are at revision {found['revision'] or 'none'}; this version wants {found['head']}"
        yield fail("notes database", says, "oncebox migrate up --only notes")
