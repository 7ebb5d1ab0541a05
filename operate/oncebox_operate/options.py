"""The options that several commands share, each with its environment variable, and what to say when one is missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Group, Parameter, Token

from oncebox_operate import durations, failures
from oncebox_operate.database_failures import Server

WHERE: Final = Group("Where", sort_key=80)
WHOSE: Final = Group("Whose", sort_key=20)

DEFAULT_DESTINATION: Final = "notes"


def to_seconds(_: object, tokens: Sequence[Token]) -> float:
    """Converter of an option that takes a duration."""
    return durations.seconds(tokens[0].value)


DatabaseUrl = Annotated[
    str | None,
    Parameter(
        name="--database-url",
        env_var="ONCEBOX_DATABASE_URL",
        group=WHERE,
        help="The sender's PostgreSQL: postgresql://user@host/database.",
    ),
]
NotesDatabaseUrl = Annotated[
    str | None,
    Parameter(
        name="--notes-database-url",
        env_var="ONCEBOX_NOTES_DATABASE_URL",
        group=WHERE,
        help="The note service's own PostgreSQL.",
    ),
]
NotesUrl = Annotated[
    str | None,
    Parameter(
        name="--notes-url",
        env_var="ONCEBOX_NOTES_URL",
        group=WHERE,
        help="The note service: http://host:port.",
    ),
]
BrokerUrl = Annotated[
    str | None,
    Parameter(
        name="--broker-url",
        env_var="ONCEBOX_BROKER_URL",
        group=WHERE,
        help="RabbitMQ (amqp://user@host:5672) or a broker of the Redis protocol (redis://host:6379).",
    ),
]
WaitTimeout = Annotated[
    float,
    Parameter(
        name="--timeout",
        env_var="ONCEBOX_WAIT_TIMEOUT",
        converter=to_seconds,
        show_default=durations.shown,
        help="How long to wait at most: 30s, 5m; 0 only looks.",
    ),
]
DEFAULT_WAIT_S: Final = 30.0
NotesToken = Annotated[
    str | None,
    Parameter(
        name="--token",
        env_var="ONCEBOX_TOKEN",
        group=WHERE,
        help="A token of the note service. Better given as a variable: others can see a command line.",
    ),
]
OperationName = Annotated[
    str,
    Parameter(help="The operation: its operation_id (note-7) or the UUID that `list --json` shows as id."),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Narrows a look-up to one party; what is not given is not asked."""

    tenant: Annotated[
        str | None,
        Parameter(name="--tenant", env_var="ONCEBOX_TENANT", group=WHOSE, help="Only of this tenant."),
    ] = None
    principal: Annotated[
        str | None,
        Parameter(
            name="--principal", env_var="ONCEBOX_PRINCIPAL", group=WHOSE, help="Only of this principal."
        ),
    ] = None
    destination: Annotated[
        str | None,
        Parameter(
            name="--destination", env_var="ONCEBOX_DESTINATION", group=WHOSE, help="Only to this destination."
        ),
    ] = None

    def __str__(self) -> str:
        """`tenant demo, destination notes`; empty when nothing is narrowed."""
        named = (("tenant", self.tenant), ("principal", self.principal), ("destination", self.destination))
        return ", ".join(f"{name} {value}" for name, value in named if value is not None)


ANY_PARTY: Final = Scope()


def sender_server(url: str | None) -> Server:
    """The sender's database that is meant. Raises a usage failure when none is named."""
    if url is None:
        raise failures.missing_variable(
            "ONCEBOX_DATABASE_URL",
            "--database-url",
            "the sender's PostgreSQL",
            "postgresql://postgres@127.0.0.1:5432/oncebox",
        )
    return Server.parse(url, "ONCEBOX_DATABASE_URL")


def notes_server(url: str | None) -> Server:
    """The note service's database that is meant. Raises a usage failure when none is named."""
    if url is None:
        raise failures.missing_variable(
            "ONCEBOX_NOTES_DATABASE_URL",
            "--notes-database-url",
            "the note service's PostgreSQL",
            "postgresql://postgres@127.0.0.1:5432/notes",
        )
    return Server.parse(url, "ONCEBOX_NOTES_DATABASE_URL")


def to_deadline(_: object, tokens: Sequence[Token]) -> object:
    """Converter of an option that takes a duration or a moment."""
    return durations.deadline(tokens[0].value)
