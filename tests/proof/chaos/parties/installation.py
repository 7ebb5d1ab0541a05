"""All parties of a run, real processes on real databases and a real broker, with a network that can fail between them."""

import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import psycopg

from oncebox_notes import administration
from tests.proof.chaos.parties.broker import Broker
from tests.proof.chaos.parties.database import Database
from tests.proof.chaos.parties.network import Network
from tests.proof.chaos.parties.ports import ports_below_those_of_clients
from tests.proof.chaos.parties.readiness import answers_at, says
from tests.proof.chaos.parties.skew import Skew
from tests.proof.chaos.parties.small_disk import SmallDisk
from tests.proof.chaos.parties.spawning import Nursery, Role
from tests.proof.chaos.wishes import FOLDER, PRINCIPAL, TENANT
from tests.support.databases import migrate_notes, migrate_sender

ONCEBOX: Final = (sys.executable, "-m", "oncebox_operate.main")
CALL_TIMEOUT_S: Final = 2.0
LEASE_S: Final = 22.0
"""The shortest lease that a worker accepts with this call timeout."""
SKEW_S: Final = 600
WORKERS: Final = 4
RELAYS: Final = 2
_SETTINGS: Final = {
    "ONCEBOX_CALL_TIMEOUT_S": f"{CALL_TIMEOUT_S}",
    "ONCEBOX_CONNECT_TIMEOUT_S": "1",
    "ONCEBOX_LEASE_S": f"{LEASE_S}",
    "ONCEBOX_RETRY_BASE_S": "0.2",
    "ONCEBOX_RETRY_CEILING_S": "1",
    "ONCEBOX_REDISPATCH_S": "5",
    "ONCEBOX_IDLE_POLL_S": "0.5",
    "ONCEBOX_CONCURRENCY": "3",
    "ONCEBOX_CHUNK": "25",
    "ONCEBOX_NOTES_POOL_SIZE": "12",
    # Room for a write that a strike holds in the middle of its transaction.
    "ONCEBOX_NOTES_LOCK_TIMEOUT_SECONDS": "4",
}
# For the cluster and its log ahead of the data, and for each note with its record, history and indexes.
_DISK_MB: Final = 400
_NOTE_KB: Final = 6
_FINDINGS: Final = "create table chaos_finding (operation_id text primary key, claim text not null)"


class Installation:
    """``with Installation(folder, 54_000) as installation``: everything runs, with room for so many notes. Afterwards
    nothing does; the folder is left."""

    def __init__(self, folder: Path, notes: int) -> None:
        self.folder = folder
        self._disk_mb = _DISK_MB + notes * _NOTE_KB // 1024
        self._stack = ExitStack()
        self._notes_port, self._metrics_port = ports_below_those_of_clients(2)
        self.nursery: Nursery
        self.network: Network
        self.sender_database: Database
        self.notes_database: Database
        self.small_disk: SmallDisk | None
        self.broker: Broker
        self.skew: Skew
        self.token: str
        self.notes: Role
        self.relays: list[Role]
        self.workers: list[Role]

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def roles(self) -> list[Role]:
        """Every process of ours but the agents."""
        return [self.notes, *self.relays, *self.workers]

    @property
    def notes_url(self) -> str:
        """The note service itself, past the proxy."""
        return f"http://127.0.0.1:{self._notes_port}"

    @property
    def metrics_url(self) -> str:
        """Of the first relay."""
        return f"http://127.0.0.1:{self._metrics_port}/metrics"

    @property
    def environment(self) -> dict[str, str]:
        """For a command that looks on: straight to everybody, past the proxies."""
        return {
            "ONCEBOX_DATABASE_URL": self.sender_database.url,
            "ONCEBOX_NOTES_DATABASE_URL": self.notes_database.url,
            "ONCEBOX_NOTES_URL": self.notes_url,
            "ONCEBOX_TOKEN": self.token,
        }

    def agents_environment(self, skewed_by_s: int) -> dict[str, str]:
        through = self.network.agents_to_database.address
        return {
            "ONCEBOX_DATABASE_URL": _through(self.sender_database.url, through),
            **self.skew.environment(skewed_by_s),
        }

    def skewed(self) -> dict[str, int]:
        """Whose clock is wrong by how many seconds, but for the agents'."""
        return {"worker-2": SKEW_S, "worker-3": -SKEW_S, "relay-2": -SKEW_S, "relay-1": SKEW_S}

    def worker_with(self, pid: int) -> Role | None:
        return next((worker for worker in self.workers if worker.pid == pid), None)

    # --- the start -------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self.nursery = self._stack.enter_context(Nursery(self._made("logs")))
        self.skew = Skew(self.folder)
        self.small_disk = self._stack.enter_context(
            SmallDisk.mounted(self.folder / "small-disk", self._disk_mb)
        )
        where = self.folder if self.small_disk is None else self.small_disk.folder
        self.sender_database = Database("sender", self.folder / "sender-database", "oncebox")
        self.notes_database = Database("notes", where / "notes-database", "notes")
        self.broker = Broker(self.nursery, self._made("broker"))
        with ThreadPoolExecutor(3) as side_by_side:
            started = [
                side_by_side.submit(start)
                for start in (self._start_sender_database, self._start_notes_database, self.broker.start)
            ]
            for one in started:
                one.result()
        self.network = self._stack.enter_context(
            Network(
                sender_database=self.sender_database.address,
                notes_database=self.notes_database.address,
                broker=self.broker.address,
                notes=self.notes_url,
            )
        )
        self._make_roles()
        for role in self.roles:
            role.launch()
        for role in self.roles:
            role.wait_until_ready()

    def _start_sender_database(self) -> None:
        self._stack.callback(self.sender_database.stop)
        self.sender_database.start()
        migrate_sender(self.sender_database.url)
        with psycopg.connect(self.sender_database.url, autocommit=True) as connection:
            connection.execute(_FINDINGS)

    def _start_notes_database(self) -> None:
        self._stack.callback(self.notes_database.stop)
        self.notes_database.start()
        migrate_notes(self.notes_database.url)
        with psycopg.connect(self.notes_database.url, autocommit=True) as connection:
            administration.add_grant(connection, TENANT, PRINCIPAL, FOLDER)
            made = administration.create_token(connection, TENANT, "worker", [TENANT])
        self.token = str(made["token"])

    def _make_roles(self) -> None:
        notes = {
            **_SETTINGS,
            "ONCEBOX_NOTES_DATABASE_URL": _through(
                self.notes_database.url, self.network.notes_to_database.address
            ),
            "ONCEBOX_NOTES_PORT": str(self._notes_port),
            "ONCEBOX_NOTES_ACCESS_LOG": str(self.folder / "logs" / "access.jsonl"),
        }
        self.notes = Role(
            self.nursery,
            "notes",
            [*ONCEBOX, "notes", "serve"],
            notes,
            answers_at(f"{self.notes_url}/readyz"),
        )
        prefix = f"chaos-{secrets.token_hex(4)}"
        self.relays = list(self._roles_of("relay", RELAYS, prefix, self.network.relays_to_broker.address))
        self.workers = list(self._roles_of("worker", WORKERS, prefix, self.network.workers_to_broker.address))

    def _roles_of(self, role: str, count: int, prefix: str, broker: str) -> Iterator[Role]:
        shared = {
            **_SETTINGS,
            "ONCEBOX_DATABASE_URL": _through(
                self.sender_database.url, self.network.roles_to_database.address
            ),
            "ONCEBOX_BROKER_URL": f"amqp://guest:guest@{broker}//",
            "ONCEBOX_QUEUE_PREFIX": prefix,
            "ONCEBOX_NOTES_URL": self.network.workers_to_notes.url,
            "ONCEBOX_TOKEN": self.token,
        }
        for number in range(1, count + 1):
            name = f"{role}-{number}"
            command = [*ONCEBOX, role]
            if name == "relay-1":
                command += ["--metrics-port", str(self._metrics_port)]
            environment = shared | self.skew.environment(self.skewed().get(name, 0))
            yield Role(self.nursery, name, command, environment, says(f'"{role}_started"'))

    def _made(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir()
        return folder


def _through(url: str, address: str) -> str:
    """The same address, through a proxy."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{parts.netloc.rpartition('@')[0]}@{address}").geturl()


def versions(installation: Installation) -> Mapping[str, str]:
    """What ran, for the report."""
    with psycopg.connect(installation.sender_database.url) as connection:
        ((postgres,),) = connection.execute("show server_version").fetchall()
    oncebox = subprocess.run([*ONCEBOX, "version"], capture_output=True, text=True, check=True).stdout
    return {
        "oncebox": " ".join(oncebox.split()),
        "PostgreSQL": str(postgres),
        "RabbitMQ": installation.broker.version(),
        "Python": sys.version.split()[0],
    }
