"""The two databases: of a server of our own, or of one that was given to us."""

from collections.abc import Callable
from typing import Final, NamedTuple

import psycopg
from psycopg import sql

from oncebox_operate.database_failures import Server, of_database
from oncebox_operate.embedded import EmbeddedPostgres
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.failures import Failure

SENDER: Final = "oncebox"
NOTES: Final = "notes"
_MAINTENANCE: Final = ("postgres", "template1")
"""Databases that every server has: whoever names one of them means the server."""
_CONNECT_TIMEOUT_S: Final = 5
_VARIABLE: Final = "ONCEBOX_DATABASE_URL"


class Databases(NamedTuple):
    """The sender's and the note service's."""

    sender: Server
    notes: Server


def of_embedded(server: EmbeddedPostgres) -> Databases:
    """Both databases of our own server, made where they are missing. Raises Failure."""
    return Databases(
        *(
            _reached(name, server.url(), lambda name=name: server.ensure_database(name))
            for name in (SENDER, NOTES)
        )
    )


def beside(given: Server) -> Databases:
    """What a given URL means: the sender's database that it names, and one for the note service beside it."""
    named = given.url.database
    sender = SENDER if named is None or named in _MAINTENANCE else named
    return Databases(_named(given, sender), _named(given, f"{sender}_{NOTES}"))


def ensure(databases: Databases) -> None:
    """Make those that are missing. Raises Failure: out of reach, or not ours to make."""
    wanted = [_name(server) for server in databases]
    with _connected(databases.sender) as connection:
        for name in wanted:
            try:
                _create_if_missing(connection, name)
            except psycopg.errors.InsufficientPrivilege:
                raise Failure(
                    ExitCode.ERROR,
                    "no_privilege",
                    f"Database {name!r} does not exist at {databases.sender}, and this user may not create it.",
                    f"Create it as its administrator: createdb {name}",
                ) from None


def _create_if_missing(connection: "psycopg.Connection[tuple[object, ...]]", name: str) -> None:
    known = connection.execute("select from pg_database where datname = %s", [name]).fetchone()
    if known is None:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))


def _connected(server: Server) -> "psycopg.Connection[tuple[object, ...]]":
    """A connection to the server: through its named database, which may not exist yet, or one that every server has."""
    errors: list[psycopg.Error] = []
    for name in (*_MAINTENANCE, _name(server)):
        try:
            return psycopg.connect(
                _named(server, name).libpq, autocommit=True, connect_timeout=_CONNECT_TIMEOUT_S
            )
        except psycopg.Error as error:
            errors.append(error)
    raise of_database(errors[0], server) or errors[0]


def _reached(name: str, url: str, make: Callable[[], str]) -> Server:
    try:
        return Server.parse(make(), _VARIABLE)
    except psycopg.Error as error:
        raise of_database(error, _named(Server.parse(url, _VARIABLE), name)) or error from error


def _named(server: Server, name: str) -> Server:
    return Server(server.url.set(database=name), server.variable)


def _name(server: Server) -> str:
    return server.url.database or SENDER
