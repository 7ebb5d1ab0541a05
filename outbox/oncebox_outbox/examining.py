"""What a doctor needs to know of the sender's database and of what is in it. Changes nothing."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import Connection

from oncebox_outbox import statements
from oncebox_outbox.edge import database_errors

OLDEST_SERVER: Final = 150_000
"""The oldest PostgreSQL that this works with, as its `server_version_num`."""
STUCK_S: Final = 120.0
"""Unknown and due for longer than this without being asked about is stuck, in seconds: twice a lost message's time."""
_NAMED_ORPHANS: Final = 10


@dataclass(frozen=True, slots=True)
class Server:
    """The database server. forgetful: settings under which a confirmed commit may be lost, with their values."""

    version: str
    supported: bool
    forgetful: dict[str, str]
    read_only: bool
    asynchronous_standbys: int


def server(connection: Connection) -> Server:
    """Look at the server. `synchronous_commit` is what this connection gets, in spite of its own wish for `on`."""
    row = connection.execute(statements.SERVER).one()
    safe = {"fsync": {"on"}, "full_page_writes": {"on"}, "synchronous_commit": {"on", "remote_apply"}}
    found = {name: str(getattr(row, name)) for name in safe}
    return Server(
        row.version,
        row.number >= OLDEST_SERVER,
        {name: value for name, value in found.items() if value not in safe[name]},
        row.read_only,
        row.asynchronous_standbys,
    )


def revision(connection: Connection) -> str | None:
    """The revision of the tables; None when there are none."""
    if not connection.execute(statements.HAS_REVISION).scalar_one():
        return None
    return connection.execute(statements.REVISION).scalar()


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in the outbox. orphans: some of the live operations without an entry. stuck: unknown, and nobody asks.

    relay, worker: one is connected to this database at this moment.
    """

    orphans: tuple[UUID, ...]
    in_review: int
    stuck: int
    relay: bool
    worker: bool


def contents(connection: Connection) -> Contents:
    """Look at the outbox. Raises SchemaMissing."""
    with database_errors():
        roles = connection.execute(statements.ROLES).one()
        return Contents(
            tuple(row.id for row in connection.execute(statements.ORPHANS, {"limit": _NAMED_ORPHANS})),
            connection.execute(statements.IN_REVIEW).scalar_one(),
            connection.execute(statements.STUCK, {"stuck_s": STUCK_S}).scalar_one(),
            roles.relay,
            roles.worker,
        )


def clock(connection: Connection) -> datetime:
    """The database's clock now, whatever transaction is open."""
    return connection.execute(statements.CLOCK).scalar_one()
