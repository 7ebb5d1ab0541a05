"""From a driver's error to a failure that names the server and says what to do. No password is ever shown."""

from dataclasses import dataclass
from typing import Final, Self

import psycopg
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from oncebox_operate import failures
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.failures import Failure

_SCHEMES: Final = frozenset({"postgres", "postgresql", "postgresql+psycopg"})


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL database as a person names it. `variable` is where its URL came from."""

    url: URL
    variable: str

    @classmethod
    def parse(cls, text: str, variable: str) -> Self:
        """Raises a usage failure for what is not a PostgreSQL URL."""
        example = "postgresql://user@127.0.0.1:5432/oncebox"
        try:
            url = make_url(text)
        except (ArgumentError, ValueError):
            raise failures.usage(f"{variable} is not a URL.", f"Use one such as {example}") from None
        if url.drivername not in _SCHEMES:
            raise failures.usage(
                f"{variable} names {url.drivername!r}; Oncebox needs PostgreSQL.",
                f"Use a URL such as {example}",
            )
        return cls(url, variable)

    @property
    def libpq(self) -> str:
        """The URL with its password, for the driver."""
        return self.url.set(drivername="postgresql").render_as_string(hide_password=False)

    @property
    def sqlalchemy(self) -> URL:
        return self.url.set(drivername="postgresql+psycopg")

    def __str__(self) -> str:
        host = self.url.host or self.url.query.get("host") or "the local socket"
        return f"{host}:{self.url.port or 5432}, database {self.url.database or self.url.username or '?'}"


def of_database(error: BaseException, server: Server) -> Failure | None:
    """A failure for an error of the driver, with or without SQLAlchemy around it; None for anything else."""
    if isinstance(error, PoolTimeout):
        return _unreachable(server, "no connection became free in time")
    cause = error.orig if isinstance(error, DBAPIError) else error
    match cause:
        case psycopg.errors.ReadOnlySqlTransaction():
            return Failure(
                ExitCode.ERROR,
                "read_only",
                f"The database at {server} is read-only; it may be a standby.",
                f"Point {server.variable} at the primary.",
            )
        case psycopg.errors.InsufficientPrivilege():
            return Failure(
                ExitCode.ERROR,
                "no_privilege",
                f"The database at {server} does not permit it: {_first_line(cause)}.",
                f"Use a role with the right in {server.variable}, or grant it to {server.url.username or 'this one'}.",
            )
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return _unreachable(server, _first_line(cause))
        case psycopg.Error():
            return Failure(
                ExitCode.ERROR, "database", f"The database at {server} says: {_first_line(cause)}."
            )
        case _:
            return None


def _unreachable(server: Server, why: str) -> Failure:
    return Failure(
        ExitCode.UNREACHABLE,
        "unreachable",
        f"Cannot reach PostgreSQL at {server}: {why}.",
        f"{_advice(why, server)} The address comes from {server.variable}.",
    )


def _advice(why: str, server: Server) -> str:
    lowered = why.lower()
    if "does not exist" in lowered and "database" in lowered:
        return f"Create the database: createdb {server.url.database}."
    if "authentication" in lowered or "password" in lowered or "role" in lowered:
        return "Check the user and the password."
    return "Check that the server runs there and accepts connections, then try again."


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
