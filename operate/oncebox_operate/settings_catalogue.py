"""The settings of the sender's side by the names of their variables. Defaults are read off the roles' own settings."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from oncebox_worker.settings import RelaySettings, RoleSettings, WorkerSettings

PREFIX: Final = "ONCEBOX_"


class Secrecy(StrEnum):
    """What of a value may be shown."""

    OPEN = "open"
    URL = "url"
    """All but the password in it."""
    SECRET = "secret"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. unit: of its number, empty for what is none. read_by: the commands that it is for."""

    variable: str
    about: str
    read_by: str
    unit: str = ""
    default: str | None = None
    secrecy: Secrecy = Secrecy.OPEN


_ADDRESSES: Final = (
    Setting(
        "ONCEBOX_DATABASE_URL", "the sender's PostgreSQL", "all but token, grant, notes", secrecy=Secrecy.URL
    ),
    Setting(
        "ONCEBOX_NOTES_DATABASE_URL",
        "the note service's PostgreSQL",
        "notes, token, grant, migrate, verify, prune, doctor",
        secrecy=Secrecy.URL,
    ),
    Setting(
        "ONCEBOX_BROKER_URL",
        "RabbitMQ or a broker of the Redis protocol",
        "relay, worker, doctor",
        secrecy=Secrecy.URL,
    ),
    Setting("ONCEBOX_NOTES_URL", "the note service", "worker, verify, doctor"),
    Setting(
        "ONCEBOX_TOKEN", "our token at the note service", "worker, verify, doctor", secrecy=Secrecy.SECRET
    ),
)
_WHOSE: Final = (
    Setting(
        "ONCEBOX_TENANT",
        "for whom enqueue writes, demo if nobody is named; narrows look-ups",
        "enqueue and look-ups",
    ),
    Setting(
        "ONCEBOX_PRINCIPAL",
        "whose grants decide, researcher if nobody is named; narrows look-ups",
        "enqueue and look-ups",
    ),
)
_ROLE_FIELDS: Final = {
    "destination": ("", "where operations go; narrows look-ups when it is set"),
    "queue_prefix": ("", "first part of the broker's queue names"),
    "chunk": ("operations", "most operations in one message and one call"),
    "lease_s": ("s", "how long a claim lasts"),
    "redispatch_s": ("s", "age at which a message that led to no claim counts as lost"),
    "budget": ("calls", "calls without a verdict before an operation is given up"),
    "retry_base_s": ("s", "longest first delay between two calls; it doubles"),
    "retry_ceiling_s": ("s", "longest delay between two calls"),
    "log_level": ("", "debug, info, warning or error"),
    "pass_limit": ("operations", "most that a relay hands over in one pass"),
    "queue_limit": ("messages", "waiting in the queue, above which the relay hands over none"),
    "idle_poll_s": ("s", "longest pause between two looks of a relay"),
    "call_timeout_s": ("s", "total time of one call to the receiver"),
    "connect_timeout_s": ("s", "longest wait for a connection to the receiver"),
    "concurrency": ("chunks", "delivered at once by one worker process"),
}
_NAMED_ELSEWHERE: Final = frozenset({"database_url", "broker_url", "notes_url", "token"})


def settings() -> tuple[Setting, ...]:
    """All of them. The note service's own (`ONCEBOX_NOTES_…`) are another party's: it tells them itself."""
    return (*_ADDRESSES, *_WHOSE, *(_of_role(name) for name in _ROLE_FIELDS))


def role_fields() -> set[str]:
    """The fields that the roles' settings have and that are told here, for a test that none is missing."""
    return {*_ROLE_FIELDS, *_NAMED_ELSEWHERE}


def _of_role(name: str) -> Setting:
    unit, about = _ROLE_FIELDS[name]
    models = [model for model in (RelaySettings, WorkerSettings) if name in model.model_fields]
    field = models[0].model_fields[name]
    return Setting(
        f"{PREFIX}{name.upper()}",
        about,
        "relay, worker" if name in RoleSettings.model_fields else _role_of(name),
        unit,
        None if field.is_required() else _number(field.default),
    )


def _role_of(name: str) -> str:
    return (
        "enqueue, worker and look-ups"
        if name == "destination"
        else ("relay" if name in RelaySettings.model_fields else "worker")
    )


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
