"""The containers around a worker: PostgreSQL with both parties' databases, the note service, a relay, the broker.

Each is made by pytest-docker-tools for one test and removed after it. pytest-celery makes the broker and the worker;
the worker is the project's own image, not the one that pytest-celery would build.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import psycopg
from pytest_celery import CeleryTestBroker, CeleryTestContainer, CeleryWorkerContainer

from oncebox_notes import administration, migrating
from oncebox_operate import migrate
from tests.acceptance.ledger import NotesLedger, SenderLedger

PASSWORD: Final = "postgres"
SUPERUSER: Final = {"POSTGRES_PASSWORD": PASSWORD}
# Short, so that a test waits for a failure and not for the clock; a chunk is small, so that load is many messages.
QUICK: Final = {
    "ONCEBOX_CALL_TIMEOUT_S": "5",
    "ONCEBOX_LEASE_S": "25",
    "ONCEBOX_RETRY_BASE_S": "0.2",
    "ONCEBOX_RETRY_CEILING_S": "1",
    "ONCEBOX_CONCURRENCY": "4",
    "ONCEBOX_CHUNK": "5",
}
# Room for a write that a test holds in the middle of its transaction.
ROOMY: Final = {"ONCEBOX_NOTES_REQUEST_LIMIT_SECONDS": "120", "ONCEBOX_NOTES_LOCK_TIMEOUT_SECONDS": "15"}


class Party(CeleryTestContainer):
    """A container that is ready when its log says so."""

    says: ClassVar[str]

    @property
    def ready_prompt(self) -> str:
        return self.says


class Postgres(Party):
    says = "database system is ready to accept connections"

    def url(self, database: str) -> str:
        """From this machine."""
        host, port = self.get_addr("5432/tcp")
        return f"postgresql://postgres:{PASSWORD}@{host}:{port}/{database}"

    def inside(self, database: str) -> str:
        """From the other containers."""
        return f"postgresql://postgres:{PASSWORD}@{hostname(self)}/{database}"


class Notes(Party):
    says = '"event": "ready"'


class Relay(Party):
    says = '"relay_started"'


class Worker(CeleryWorkerContainer):
    """The project's image in the role of a worker."""

    @property
    def ready_prompt(self) -> str:
        return '"worker_started"'


@dataclass(frozen=True, slots=True)
class Databases:
    """Both parties' databases with their tables, a delegate's token and a grant, and what is in them."""

    postgres: Postgres
    token: str
    sender: SenderLedger
    notes: NotesLedger

    @classmethod
    def made(cls, postgres: Postgres) -> "Databases":
        with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
            for name in ("oncebox", "notes"):
                connection.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0".encode())
        migrate.up(postgres.url("oncebox"))
        migrating.up(postgres.url("notes"))
        with psycopg.connect(postgres.url("notes"), autocommit=True) as connection:
            administration.add_grant(connection, "demo", "researcher", "drafts")
            made = administration.create_token(connection, "demo", "worker", ["demo"])
        return cls(
            postgres,
            str(made["token"]),
            SenderLedger(postgres.url("oncebox")),
            NotesLedger(postgres.url("notes")),
        )

    def close(self) -> None:
        self.sender.close()
        self.notes.close()


def hostname(container: CeleryTestContainer) -> str:
    """Its name in the network of the test."""
    return str(container.attrs["Config"]["Hostname"])


def waiting_messages(broker: CeleryTestBroker, queue: str = "oncebox.deliver") -> int:
    """Messages that the broker would give to a worker now."""
    with broker.container.client as connection:
        channel: Any = connection.default_channel  # py-amqp carries no types
        return int(channel.queue_declare(queue, passive=True).message_count)
