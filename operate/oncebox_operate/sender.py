"""The sender's database as the commands use it: a short-lived engine, and finding the operation that is meant."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from oncebox_operate import failures
from oncebox_operate.database_failures import Server, of_database
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.failures import Failure
from oncebox_operate.options import Scope
from oncebox_outbox import status
from oncebox_outbox.status import OperationStatus

CONNECT_TIMEOUT_S: Final = 5
"""Longest wait for a connection, in seconds: a person is waiting."""


@contextmanager
def engine(server: Server) -> Generator[Engine]:
    """An engine for one command; the driver's errors inside become failures that name the server.

    Commits are on disk when they return, whatever the server's default is: an exit code says so.
    """
    made = create_engine(
        server.sqlalchemy,
        poolclass=NullPool,
        connect_args={
            "connect_timeout": CONNECT_TIMEOUT_S,
            "application_name": "oncebox",
            # An argument takes the place of the URL's own options: they are kept in front of ours.
            "options": f"{server.url.query.get('options', '')} -c synchronous_commit=on",
        },
    )
    try:
        yield made
    except SQLAlchemyError as error:
        if failure := of_database(error, server):
            raise failure from error
        raise
    finally:
        made.dispose()


def the_operation(connection: Connection, identifier: str, scope: Scope) -> OperationStatus:
    """The one operation that is meant. Raises a failure when there is none, or more than one."""
    found = status.find(
        connection,
        identifier,
        tenant=scope.tenant,
        principal=scope.principal,
        destination=scope.destination,
    )
    if not found:
        raise failures.not_found(identifier, str(scope))
    if len(found) > 1:
        raise _ambiguous(identifier, found)
    return found[0]


def by_id(connection: Connection, known: OperationStatus) -> OperationStatus:
    """The same operation as it is now."""
    # Its UUID may be another operation's name.
    found = status.find(connection, str(known.id), **scope_of(known))
    return next(operation for operation in found if operation.id == known.id)


def scope_of(known: OperationStatus) -> dict[str, str]:
    """Whose the operation is, as look-ups take it."""
    return {"tenant": known.tenant, "principal": known.principal, "destination": known.destination}


def _ambiguous(identifier: str, found: list[OperationStatus]) -> Failure:
    return Failure(
        ExitCode.USAGE,
        "ambiguous",
        f"{len(found)} operations are called {identifier!r}.",
        "Narrow it with --tenant, --principal or --destination, or give the UUID.",
        matches=[
            {
                "id": str(operation.id),
                "operation_id": operation.operation_id,
                "tenant": operation.tenant,
                "principal": operation.principal,
                "destination": operation.destination,
                "state": str(operation.state),
            }
            for operation in found
        ],
    )
