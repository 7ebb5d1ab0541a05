"""The database engine of relays and workers: one statement is one transaction, durable before the next step."""

from typing import Final

import psycopg
from sqlalchemy import URL, Engine, ExceptionContext, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, InternalError, OperationalError

from oncebox_outbox import examining
from oncebox_outbox.edge import conceal_values

UNAVAILABLE: Final = (OperationalError, InterfaceError, InternalError)
"""What a statement raises while the database is away, restarting, full or read-only: wait and try again."""
_STATEMENT_TIMEOUT_MS: Final = 10_000


def worker_engine(url: str | URL, *, pool_size: int, application: str) -> Engine:
    """An engine that commits each statement by itself, with `synchronous_commit = on` whatever the default is.

    The claim's commit puts the enqueue before it on disk, too, even if the agent's own setting was `off`.
    """
    engine = create_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        isolation_level="AUTOCOMMIT",
        pool_size=pool_size,
        max_overflow=0,
        pool_pre_ping=True,
        # An error that shows parameters would show a note's text in a log.
        hide_parameters=True,
        connect_args={
            "application_name": application,
            "connect_timeout": 5,
            "options": f"-c synchronous_commit=on -c statement_timeout={_STATEMENT_TIMEOUT_MS} -c jit=off",
        },
    )
    event.listen(engine, "handle_error", _drop_what_became_read_only)
    event.listen(engine, "handle_error", _conceal_values)
    return engine


def _conceal_values(context: ExceptionContext) -> None:
    """`hide_parameters` hides those of the statement; the row that the database shows stays."""
    if isinstance(context.sqlalchemy_exception, DBAPIError):
        conceal_values(context.sqlalchemy_exception)


def _drop_what_became_read_only(context: ExceptionContext) -> None:
    """After a fail-over a pool may still lead to the old primary, alive and read-only: only new connections find the
    new one, so all of the pool are dropped as if the server had closed them."""
    if isinstance(context.original_exception, psycopg.errors.ReadOnlySqlTransaction):
        context.is_disconnect = True


def durability_faults(engine: Engine) -> list[str]:
    """Settings of this server under which the guarantees do not hold, each with what to type."""
    with engine.connect() as connection:
        server = examining.server(connection)
    faults = [
        f"{name} is {value} on the database server; set it to on: ALTER SYSTEM SET {name} = on; then restart it"
        for name, value in server.forgetful.items()
        if name != "synchronous_commit"
    ]
    if "synchronous_commit" in server.forgetful:
        value = server.forgetful["synchronous_commit"]
        faults.append(f"synchronous_commit is {value} in spite of our setting; allow it for this role")
    if server.read_only:
        faults.append("the database is read-only (a standby?); point ONCEBOX_DATABASE_URL at the primary")
    return faults
