"""The current permission of a principal for a folder, read under a lock that a revocation waits for."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from oncebox_notes import statements
from oncebox_notes.database import Connection
from oncebox_notes.identity import Identity
from oncebox_notes.problems import Problem


@dataclass(frozen=True, slots=True)
class Place:
    """A folder as one principal asks for it."""

    owner: Identity
    folder: str


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant that is in force; `read_at` is the database's clock while its lock was held."""

    id: int
    folder_id: int
    read_at: datetime


async def lock_and_read(connection: Connection, places: Collection[Place]) -> dict[Place, Grant]:
    """The grants in force. They stay so until the transaction ends: a revocation waits for the shared locks."""
    asked = list(places)
    columns = {
        "tenants": [place.owner.tenant for place in asked],
        "principals": [place.owner.principal for place in asked],
        "folders": [place.folder for place in asked],
    }
    await connection.execute(statements.GRANT_LOCKS_SHARED, columns)
    cursor = await connection.execute(statements.GRANTS_READ, columns)
    return {asked[row[0] - 1]: Grant(row[1], row[2], row[3]) for row in await cursor.fetchall()}


async def permitted_folders(
    connection: Connection, identities: Collection[Identity]
) -> dict[Identity, list[tuple[str, datetime]]]:
    """For each principal the folders it may write to, with the time of the grant, by path."""
    asked = list(identities)
    cursor = await connection.execute(
        statements.PERMITTED_FOLDERS,
        {
            "tenants": [identity.tenant for identity in asked],
            "principals": [identity.principal for identity in asked],
        },
    )
    folders: dict[Identity, list[tuple[str, datetime]]] = {identity: [] for identity in asked}
    for tenant, principal, path, granted_at in await cursor.fetchall():
        folders[Identity(tenant, principal)].append((path, granted_at))
    return folders


def not_writable(permitted: Sequence[str]) -> Problem:
    """The same answer for a folder that does not exist and for one that the caller may not see."""
    if permitted:
        advice = "Use one of the permitted folders in a new operation, or have the folder granted"
    else:
        advice = "No folder is permitted: report this, and have a folder granted"
    return Problem("folder_not_writable", f"{advice}. Nothing was executed.", permitted_folders=permitted)
