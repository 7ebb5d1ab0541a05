"""All checks in their order. A party that does not answer costs its own checks, and not those of the others."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from oncebox_operate import sender
from oncebox_operate.database_failures import Server
from oncebox_operate.doctor import broker_checks, sender_checks
from oncebox_operate.doctor.checks import Check, Verdict, fail, unreachable, warn
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.failures import Failure
from oncebox_outbox import examining, registry
from oncebox_outbox.registry import Seen

_BROKER: Final = "export ONCEBOX_BROKER_URL=amqp://guest:guest@127.0.0.1:5672//"
_NOTES: Final = "export ONCEBOX_NOTES_DATABASE_URL=postgresql://postgres@127.0.0.1:5432/notes"


@dataclass(frozen=True, slots=True)
class Parties:
    """Who is looked at; None for what no setting names."""

    database: Server
    notes_database: Server | None
    broker_url: str | None
    notes_url: str | None
    token: str | None
    destination: str


def quickly(parties: Parties) -> Iterator[Check]:
    """What a health check needs: our own database and tables, and the broker's port."""
    try:
        with sender.engine(parties.database) as engine, engine.connect() as connection:
            yield from sender_checks.of_server(connection, parties.database)
            yield sender_checks.of_tables(connection)
    except Failure as failure:
        yield _failed("database", failure, parties.database)
    if parties.broker_url is not None:
        yield broker_checks.of_port(parties.broker_url)


def thoroughly(parties: Parties, looking_at: Callable[[str], None]) -> Iterator[Check]:
    """Everything. `looking_at` is told which party is next: one that is away takes some seconds."""
    # Imported here: a health check has no time for an HTTP client and the worker's settings.
    from oncebox_operate.doctor import receiver_checks

    settings_checks, settings = receiver_checks.of_settings()
    yield from settings_checks
    looking_at("the sender's database")
    seen: Seen | None = None
    clock: Callable[[], datetime] | None = None
    try:
        with sender.engine(parties.database) as engine, engine.connect() as connection:
            yield from sender_checks.of_server(connection, parties.database)
            tables = sender_checks.of_tables(connection)
            yield tables
            if tables.verdict is Verdict.OK:
                yield from sender_checks.of_contents(connection)
                seen = registry.last_seen(engine, parties.destination)
                yield receiver_checks.of_destination(parties.destination, seen, settings)
        clock = _clock(parties.database)
    except Failure as failure:
        yield _failed("database", failure, parties.database)
    looking_at("the note service")
    yield from receiver_checks.of_service(parties.notes_url, parties.token, seen, clock)
    looking_at("the broker")
    yield from _broker(parties, "oncebox" if settings is None else settings.queue_prefix)
    looking_at("the note service's database")
    yield from _notes_database(parties)


def _broker(parties: Parties, queue_prefix: str) -> Iterator[Check]:
    if parties.broker_url is None:
        yield warn("broker", "not looked at: ONCEBOX_BROKER_URL is not set", _BROKER)
    else:
        yield from broker_checks.of_broker(parties.broker_url, queue_prefix)


def _notes_database(parties: Parties) -> Iterator[Check]:
    # Imported here, as above.
    from oncebox_operate.doctor import notes_checks

    if parties.notes_database is None:
        yield warn("notes database", "not looked at: ONCEBOX_NOTES_DATABASE_URL is not set", _NOTES)
        return
    try:
        yield from notes_checks.of_notes_database(parties.notes_database)
    except Failure as failure:
        yield _failed("notes database", failure, parties.notes_database)


def _failed(name: str, failure: Failure, server: Server) -> Check:
    says = failure.message.rstrip(".")
    if failure.code is not ExitCode.UNREACHABLE:
        return fail(name, says, f'psql "${server.variable}"')
    database = server.url.database
    missing = "does not exist" in says and database is not None
    return unreachable(
        name, says, f"createdb {database}" if missing else f'pg_isready -d "${server.variable}"'
    )


def _clock(server: Server) -> Callable[[], datetime]:
    def now() -> datetime:
        with sender.engine(server) as engine, engine.connect() as connection:
            return examining.clock(connection)

    return now
