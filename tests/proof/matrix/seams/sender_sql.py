"""The seam at the sender's database: SQLAlchemy's cursor events, and the commit, which has none that comes after it."""

import re
from typing import Any, Final

import psycopg
from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultDialect

from tests.proof.matrix.moments import Seam
from tests.proof.matrix.seams.trap import Trap

COMMIT: Final = "COMMIT"
NAME: Final = re.compile(r"/\* oncebox:(\w+) \*/")


def install(trap: Trap) -> None:
    """Watch every engine of this process."""

    def before(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if (name := name_of(statement)) is not None:
            trap.before(Seam.SENDER_SQL, name)

    def after(_connection: object, cursor: Any, statement: str, *_: object) -> None:
        if (name := name_of(statement)) is not None:
            trap.after(Seam.SENDER_SQL, name)
            if trap.lost(Seam.SENDER_SQL, name, cursor.connection.pgconn.finish):
                raise gone()

    event.listen(Engine, "before_cursor_execute", before)
    event.listen(Engine, "after_cursor_execute", after)
    commit = DefaultDialect.do_commit

    def do_commit(self: DefaultDialect, dbapi_connection: Any) -> None:
        trap.before(Seam.SENDER_SQL, COMMIT)
        commit(self, dbapi_connection)
        trap.after(Seam.SENDER_SQL, COMMIT)
        if trap.lost(Seam.SENDER_SQL, COMMIT, dbapi_connection.pgconn.finish):
            raise gone()

    DefaultDialect.do_commit = do_commit


def name_of(statement: str) -> str | None:
    """The name that a statement carries."""
    found = NAME.match(statement)
    return None if found is None else found[1]


def gone() -> psycopg.OperationalError:
    """What a client is told when the server, or the way to it, is gone before the reply."""
    return psycopg.OperationalError("server closed the connection unexpectedly")
