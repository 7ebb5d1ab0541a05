"""One installation for the rows of one test process: databases, queues and a note service, emptied for each row.

The rows come one after another; each has the whole of it to itself.
"""

import os
import random
import socket
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psycopg
from pydantic import SecretStr
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from oncebox_destinations.note_service import NoteService
from oncebox_destinations.settings import NoteServiceSettings
from oncebox_notes import administration
from oncebox_outbox import OperationNotFound, registry
from oncebox_outbox.engine import worker_engine
from oncebox_outbox.policy import Policy
from oncebox_worker.call_loop import CallLoop
from oncebox_worker.delivery import Delivery
from tests.acceptance.ledger import NotesLedger, SenderLedger
from tests.proof.matrix import agent
from tests.proof.matrix.cast import Cast
from tests.proof.matrix.forks import Forks
from tests.proof.matrix.queues import Queues
from tests.support.polling import eventually

NOTHING: Final = "nothing"
"""What the sender says of an operation that was never committed: there is none."""
_QUICK: Final = {
    "ONCEBOX_CALL_TIMEOUT_S": "2",
    "ONCEBOX_CONNECT_TIMEOUT_S": "1",
    "ONCEBOX_LEASE_S": "22",
    "ONCEBOX_RETRY_BASE_S": "0.05",
    "ONCEBOX_RETRY_CEILING_S": "0.3",
    "ONCEBOX_CONCURRENCY": "2",
    "ONCEBOX_IDLE_POLL_S": "0.2",
    "ONCEBOX_NOTES_POOL_SIZE": "4",
}
"""Short, so that a row waits for a strike and not for the clock."""
_KEPT: Final = ("alembic_version", "destination")


@dataclass(frozen=True, slots=True)
class Look:
    """What the sender said of an operation, and how many notes the receiver held for it right before and right after."""

    said: str
    notes_before: int
    notes: int


class Town:
    """Both ledgers, the processes (`cast`), and what an agent and a worker do within the test."""

    def __init__(
        self, forks: Forks, sender: str, notes: str, broker_url: str, folder: Path, stack: ExitStack
    ) -> None:
        self.folder: Final = folder
        self.sender: Final = SenderLedger(sender)
        stack.callback(self.sender.close)
        self.notes: Final = NotesLedger(notes)
        stack.callback(self.notes.close)
        self.notes_database: Final = notes
        self.queues: Final = stack.enter_context(Queues.at(broker_url, f"matrix-{os.getpid()}"))
        with psycopg.connect(notes, autocommit=True) as operator:
            administration.add_grant(operator, agent.OUTBOX.tenant, agent.OUTBOX.principal, "drafts")
            made = administration.create_token(operator, agent.OUTBOX.tenant, "worker", [agent.OUTBOX.tenant])
        port = _free_port()
        url = f"http://127.0.0.1:{port}"
        environment = {
            **_inherited(),
            **_QUICK,
            "ONCEBOX_DATABASE_URL": sender,
            "ONCEBOX_NOTES_DATABASE_URL": notes,
            "ONCEBOX_BROKER_URL": broker_url,
            "ONCEBOX_QUEUE_PREFIX": self.queues.topology.prefix,
            "ONCEBOX_NOTES_URL": url,
            "ONCEBOX_NOTES_PORT": str(port),
            "ONCEBOX_TOKEN": str(made["token"]),
        }
        self.cast: Final = Cast(forks, environment, folder, self.queues)
        stack.callback(self.cast.end_all)
        self.engine: Final[Engine] = create_engine(
            make_url(sender).set(drivername="postgresql+psycopg"), poolclass=NullPool
        )
        self._asking: Final = stack.enter_context(
            self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        )
        self.worker_engine: Final[Engine] = worker_engine(sender, pool_size=1, application="oncebox matrix")
        stack.callback(self.worker_engine.dispose)
        self.loop: Final = CallLoop()
        self.receiver: Final = NoteService(NoteServiceSettings(url, SecretStr(str(made["token"]))))
        stack.callback(lambda: self.loop.run(self.receiver.aclose()))

    def begin(self, row: str) -> None:
        """Everything is empty, and nobody is at work."""
        self.cast.begin(row)
        self.sender.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'"
        )
        tables = self.sender.value(
            "SELECT string_agg(format('oncebox.%%I', tablename), ', ') FROM pg_tables"
            " WHERE schemaname = 'oncebox' AND tablename <> ALL(%s)",
            list(_KEPT),
        )
        self.sender.execute(f"TRUNCATE {tables}")
        self.queues.empty(consumers=self.cast.consumers())
        self.cast.note_service().wait_for('"ready"')
        self.know_receiver()

    def know_receiver(self) -> None:
        """A worker has seen the receiver before, and it is the one that answers."""
        told = self.loop.run(self.receiver.capabilities())
        self.sender.execute(
            "UPDATE oncebox.destination SET receiver = NULL WHERE receiver <> %s", told.receiver
        )
        registry.see(self.worker_engine, agent.OUTBOX.destination, told)

    def look(self, key: str) -> Look:
        """Ask both ledgers: the receiver's on both sides of the sender's word."""
        before = len(self.notes.notes_of(key))
        try:
            said = str(agent.OUTBOX.status(self._asking, key).state)
        except OperationNotFound:
            said = NOTHING
        return Look(said, before, len(self.notes.notes_of(key)))

    def let_time_pass(self, dead: list[int]) -> None:
        """The leases of dead workers run out, and stamps of messages that led to nothing are old."""
        self.sender.lapse_leases_of(dead)
        self.sender.execute(
            "UPDATE oncebox.outbox_entry SET dispatched_at = dispatched_at - interval '1 h' WHERE dispatched_at IS NOT NULL"
        )

    def leased(self) -> bool:
        """Whether anybody is at work on an operation."""
        return self.sender.value("SELECT count(*) FROM oncebox.outbox_entry WHERE lease_until > now()") > 0

    def drain(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Until no operation has work left; `meanwhile` is called again and again."""

        def done() -> bool:
            meanwhile()
            return self.sender.live() == 0

        eventually(
            done,
            timeout=20.0,
            interval=0.005,
            what=lambda: (
                f"{self.sender.live()} operations are live: {self.sender.rows('SELECT * FROM oncebox.outbox_entry')}"
            ),
        )

    def save(self, key: str, folder: str = "drafts", **more: Any) -> UUID:
        """Commit the wish to save the note of a key; the operation's UUID."""
        with Session(self.engine) as session, session.begin():
            agent.save(session, key, folder, **more)
        return self.id_of(key)

    def id_of(self, key: str) -> UUID:
        return UUID(str(self.sender.value("SELECT id FROM oncebox.operation WHERE operation_id = %s", key)))

    def deliver(self, id: UUID) -> None:
        """What a worker does with a message, within this process."""
        delivery = Delivery(
            self.worker_engine,
            Policy(),
            {agent.OUTBOX.destination: self.receiver},
            self.loop,
            "matrix:0:healthy",
        )
        delivery.deliver(agent.OUTBOX.destination, [id])

    def grant(self, folder: str) -> None:
        """Let the agent's principal write into the folder."""
        with psycopg.connect(self.notes_database, autocommit=True) as operator:
            administration.add_grant(operator, agent.OUTBOX.tenant, agent.OUTBOX.principal, folder)


@contextmanager
def town(forks: Forks, sender: str, notes: str, broker_url: str, folder: Path) -> Generator[Town]:
    """An installation on fresh databases."""
    with ExitStack() as stack:
        yield Town(forks, sender, notes, broker_url, folder, stack)


def _inherited() -> dict[str, str]:
    """The test's own environment, without any setting of ours."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("ONCEBOX_", "PYTEST_"))}


def _free_port() -> int:
    """A port that stays free while the note service is down: below those that the system gives to clients."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
