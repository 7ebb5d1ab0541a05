"""Where SQLAlchemy's and the driver's errors become ours, with the cause kept and a note's text left out."""

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from oncebox_outbox.errors import RetryTransaction, SchemaMissing


def on_connection(transaction: Session | Connection) -> Connection:
    """The connection of the caller's transaction. `Session.connection()` does not flush the caller's objects."""
    return transaction.connection() if isinstance(transaction, Session) else transaction


@contextmanager
def database_errors() -> Generator[None]:
    """Turn a lost race and missing tables into errors that say what to do; let everything else pass."""
    try:
        yield
    except DBAPIError as error:
        conceal_values(error)
        match error.orig:
            case psycopg.errors.SerializationFailure() | psycopg.errors.DeadlockDetected():
                raise RetryTransaction(_first_line(error.orig)) from error
            case (
                psycopg.errors.UndefinedTable()
                | psycopg.errors.InvalidSchemaName()
                | psycopg.errors.UndefinedColumn()
                | psycopg.errors.UndefinedFunction()
            ):
                raise SchemaMissing(_first_line(error.orig)) from error
            case _:
                raise


def conceal_values(error: DBAPIError) -> None:
    """Make the error one that may be logged: it would show the parameters of the statement, and after its first line
    the row that was refused. Both hold the note."""
    error.hide_parameters = True
    for told in (error, error.orig):
        if told is not None and told.args:
            told.args = (str(told.args[0]).partition("\n")[0], *told.args[1:])


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0]
