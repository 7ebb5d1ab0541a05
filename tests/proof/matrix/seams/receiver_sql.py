"""The seam at the note service's database: psycopg's `execute`, for the server's connections and its operator's."""

from typing import Any, Final

import psycopg

from tests.proof.matrix.moments import Seam
from tests.proof.matrix.points import TRANSACTION, receiver_statements
from tests.proof.matrix.seams.sender_sql import gone
from tests.proof.matrix.seams.trap import Trap

_NAMES: Final = {sql: name for name, sql in receiver_statements().items()} | {sql: sql for sql in TRANSACTION}


def install(trap: Trap) -> None:
    """Watch every connection of this process that is made from now on, or was."""
    served: Any = psycopg.AsyncConnection
    operated: Any = psycopg.Connection
    waiting, executing = served.execute, operated.execute

    async def execute_async(connection: Any, query: Any, *given: Any, **more: Any) -> Any:
        name = _name(query)
        trap.before(Seam.RECEIVER_SQL, name)
        cursor = await waiting(connection, query, *given, **more)
        trap.after(Seam.RECEIVER_SQL, name)
        if trap.lost(Seam.RECEIVER_SQL, name, connection.pgconn.finish):
            raise gone()
        return cursor

    def execute(connection: Any, query: Any, *given: Any, **more: Any) -> Any:
        name = _name(query)
        trap.before(Seam.RECEIVER_SQL, name)
        cursor = executing(connection, query, *given, **more)
        trap.after(Seam.RECEIVER_SQL, name)
        if trap.lost(Seam.RECEIVER_SQL, name, connection.pgconn.finish):
            raise gone()
        return cursor

    served.execute = execute_async
    operated.execute = execute


def _name(query: object) -> str:
    return _NAMES.get(query, "") if isinstance(query, str) else ""
