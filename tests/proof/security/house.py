"""A note service as a real process, with two tenants, and in each two principals of the same names."""

import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from oncebox_notes.settings import Settings
from tests.acceptance.town import ROOMY
from tests.notes.running import RunningService, Sender
from tests.support.processes import Processes

ONCEBOX = [sys.executable, "-m", "oncebox_operate.main"]
TENANTS = ("acme", "demo")
PRINCIPALS = ("researcher", "writer")
# For each note the grant that allowed it, while it was in force, to that very principal and folder.
OUTSIDE_ITS_GRANT = """
SELECT v.operation_key, v.created_at, g.granted_at, g.revoked_at
FROM note_version v LEFT JOIN folder_grant g ON g.id = v.grant_id
LEFT JOIN folder f ON f.id = g.folder_id
WHERE g.id IS NULL OR g.tenant <> v.tenant OR g.principal <> v.principal OR f.path <> v.folder
   OR v.created_at < g.granted_at OR v.created_at > g.revoked_at
"""


@dataclass(frozen=True, slots=True)
class Party:
    """A principal of a tenant: a client with its token."""

    tenant: str
    principal: str
    sender: Sender

    def __str__(self) -> str:
        return f"{self.tenant}/{self.principal}"

    def text(self, about: str) -> str:
        """A text that is nobody else's."""
        return f"{about}: only {self} may read this."


class House(RunningService):
    """The service at its address, with what an operator can do in its database."""

    def __init__(self, url: str, settings: Settings, access_log: Path) -> None:
        super().__init__(url, settings, access_log)
        self.parties: list[Party] = []

    def settle_in(self) -> None:
        """Four parties, each with a grant for `drafts` of its own tenant; two of them with one of their own, too."""
        for tenant in TENANTS:
            for name in PRINCIPALS:
                self.parties.append(Party(tenant, name, self.principal(name, tenant=tenant)))
            self.grant("private", "writer", tenant=tenant)
            self.grant(f"only-{tenant}", "researcher", tenant=tenant)

    def party(self, written: str) -> Party:
        (found,) = [party for party in self.parties if str(party) == written]
        return found

    def fingerprint(self) -> dict[str, Any]:
        """Every row of every table, by table: equal when nothing at all was recorded."""
        with self.connect() as connection:
            tables = connection.execute(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
                " AND table_type = 'BASE TABLE' ORDER BY table_name"
            ).fetchall()
            digest = "SELECT count(*), md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {} t"
            return {name: connection.execute(digest.format(name).encode()).fetchone() for (name,) in tables}


def fresh_key(about: str = "key") -> str:
    """A key that no other test uses."""
    return f"{about}-{secrets.token_hex(6)}"


def built(database_url: str, folder: Path, processes: Processes) -> House:
    """The process, started and answering, with its four parties."""
    access_log = folder / "access.jsonl"
    given = {f"ONCEBOX_NOTES_{name.upper()}": str(value) for name, value in ROOMY.items()}
    process = processes.start(
        "notes",
        [*ONCEBOX, "notes", "serve"],
        env={
            "ONCEBOX_NOTES_DATABASE_URL": database_url,
            "ONCEBOX_NOTES_PORT": "0",
            "ONCEBOX_NOTES_ACCESS_LOG": str(access_log),
            **given,
        },
    )
    url = process.wait_for_log(r'"url": "(http://[^"]+)"', timeout=40)[1]
    house = House(url, Settings(database_url=SecretStr(database_url), access_log=access_log), access_log)
    house.settle_in()
    return house
