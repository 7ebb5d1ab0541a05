"""One whole installation of real processes for a test: both databases, broker queues, note service, relay, workers.

The note service listens on a port of its own; workers reach it through a proxy that the test can make fail.
"""

import contextlib
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psycopg
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from oncebox_notes import administration
from oncebox_outbox import Enqueued, Intent, OperationStatus, Outbox, Write
from tests.acceptance.ledger import AccessLog, NotesLedger, SenderLedger
from tests.acceptance.receiver import Receiver
from tests.support import processes
from tests.support.faultproxy import FaultProxy
from tests.support.polling import eventually
from tests.support.processes import Processes, RunningProcess

OUTBOX = Outbox(tenant="demo", principal="researcher", destination="notes")
WHY = Intent(run="run-42", step="summarise", purpose="keep finding 7")
ONCEBOX = [sys.executable, "-m", "oncebox_operate.main"]
# A relay's and a worker's log names its events so.
RELAY_STARTED, WORKER_STARTED = '"relay_started"', '"worker_started"'
# Short, so that a test waits for a failure and not for the clock. The shortest lease that a worker accepts
# is its call timeout and 20 s more.
QUICK = {
    "call_timeout_s": 2.0,
    "connect_timeout_s": 1.0,
    "lease_s": 22.0,
    "retry_base_s": 0.2,
    "retry_ceiling_s": 1.0,
    "concurrency": 4,
    "idle_poll_s": 0.5,
}
# Room for a write that a test holds in the middle of its transaction, and for those that wait for it.
ROOMY = {"request_limit_seconds": 120, "lock_timeout_seconds": 15, "pool_size": 16}


@dataclass(frozen=True, slots=True)
class Places:
    """Where an installation of a test lives."""

    sender_database: str
    notes_database: str
    broker_url: str
    queue_prefix: str
    folder: Path


class Town:
    """``with Town(places, processes) as town``: nothing runs yet but the proxy; start what the test needs.

    ``settings`` are those of relays and workers, on top of ``QUICK``.
    """

    def __init__(self, places: Places, started: Processes, **settings: object) -> None:
        self.places = places
        self.processes = started
        self.settings = QUICK | settings
        self.log = AccessLog(places.folder / "access.jsonl")
        self.sender = SenderLedger(places.sender_database)
        self.notes = NotesLedger(places.notes_database)
        self.engine: Engine = create_engine(
            make_url(places.sender_database).set(drivername="postgresql+psycopg"), poolclass=NullPool
        )
        self._port = _free_port()
        self.proxy = FaultProxy(self.notes_url)
        self._notes: RunningProcess | None = None
        self._roles: list[tuple[str, dict[str, object], RunningProcess]] = []

    def __enter__(self) -> Self:
        self.proxy.__enter__()
        with self._operator() as connection:
            administration.add_grant(connection, OUTBOX.tenant, OUTBOX.principal, "drafts")
            made = administration.create_token(connection, OUTBOX.tenant, "worker", [OUTBOX.tenant])
        self.token = str(made["token"])
        self.receiver = Receiver(self.notes_url, self.token, f"{OUTBOX.tenant}/{OUTBOX.principal}")
        return self

    def __exit__(self, *_: object) -> None:
        self.processes.reap()
        self.receiver.close()
        self.proxy.__exit__()
        self.engine.dispose()
        self.sender.close()
        self.notes.close()

    # --- processes -------------------------------------------------------------------------------------

    @property
    def notes_url(self) -> str:
        """The note service itself, not the proxy before it."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def environment(self) -> dict[str, str]:
        """What every process of the installation is told."""
        return {
            "ONCEBOX_DATABASE_URL": self.places.sender_database,
            "ONCEBOX_NOTES_DATABASE_URL": self.places.notes_database,
            "ONCEBOX_BROKER_URL": self.places.broker_url,
            "ONCEBOX_QUEUE_PREFIX": self.places.queue_prefix,
            "ONCEBOX_NOTES_URL": self.proxy.url,
            "ONCEBOX_NOTES_PORT": str(self._port),
            "ONCEBOX_NOTES_ACCESS_LOG": str(self.places.folder / "access.jsonl"),
            "ONCEBOX_TOKEN": self.token,
        }

    def open(self, *, workers: int = 1, **settings: object) -> list[RunningProcess]:
        """Start note service, relay and workers side by side; the workers are returned."""
        self.launch_notes()
        self._launch("relay", {})
        started = [self._launch("worker", settings) for _ in range(workers)]
        self.wait_for_notes()
        self._wait_for_roles()
        if workers:
            # A worker may be there before the receiver: until it has seen it, it claims nothing.
            seen = "SELECT count(*) FROM oncebox.destination WHERE capabilities IS NOT NULL"
            eventually(lambda: self.sender.value(seen), timeout=20, what="a worker has seen the receiver")
        return started

    def launch_notes(self) -> RunningProcess:
        """Start the note service; `wait_for_notes` says when it answers."""
        given = {f"ONCEBOX_NOTES_{name.upper()}": str(value) for name, value in ROOMY.items()}
        self._notes = self.processes.start(
            "notes", [*ONCEBOX, "notes", "serve"], env=self.environment | given
        )
        return self._notes

    def wait_for_notes(self) -> None:
        """Until the note service answers."""
        assert self._notes is not None
        self._notes.wait_for_http(f"{self.notes_url}/readyz", timeout=30)

    def open_notes(self) -> None:
        """Start the note service and wait until it answers."""
        self.launch_notes()
        self.wait_for_notes()

    def close_notes(self) -> None:
        """Stop the note service as its operator does."""
        assert self._notes is not None
        assert self._notes.terminate() == 0

    def kill_notes(self) -> None:
        """kill -9."""
        assert self._notes is not None
        self._notes.kill()

    @property
    def relay(self) -> RunningProcess:
        """The relay that runs."""
        (running,) = self._running("relay")
        return running

    @property
    def worker(self) -> RunningProcess:
        """The only worker that runs."""
        (running,) = self._running("worker")
        return running

    def start_workers(self, count: int = 1, **settings: object) -> list[RunningProcess]:
        started = [self._launch("worker", settings) for _ in range(count)]
        self._wait_for_roles()
        return started

    def be_whole(self) -> None:
        """For a test that shares this installation: a sound network, and one process of each role."""
        self.proxy.clear_rules()
        self.proxy.pass_through()
        if self._notes is None or self._notes.returncode() is not None:
            self.launch_notes()
        for role in ("relay", "worker"):
            if not self._running(role):
                self._launch(role, {})
            for process in self._running(role):
                process.send_signal(signal.SIGCONT)
        self.wait_for_notes()
        self._wait_for_roles()

    def start_worker(self, command: Sequence[str], **settings: object) -> RunningProcess:
        """Start a worker by a command of the test's own; it is not one of those that `restart_everything` knows."""
        return self.processes.start("worker", command, env=self.environment | self._given(settings))

    def restart_everything(self) -> None:
        """End every process, and start as many of each kind again."""
        roles, self._roles = self._roles, []
        running = [(role, settings) for role, settings, process in roles if process.returncode() is None]
        left = [process for process in self.processes.started if process.returncode() is None]
        for process in left:
            process.send_signal(signal.SIGTERM)
        for process in left:
            process.wait()
        self.launch_notes()
        self.wait_for_notes()
        for role, settings in running:
            self._launch(role, settings)
        self._wait_for_roles()

    def oncebox(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run the `oncebox` command as a person would, with what `environment` adds or changes."""
        return processes.run([*ONCEBOX, *arguments], env=self.environment | environment)

    def _launch(self, role: str, settings: dict[str, object]) -> RunningProcess:
        started = self.processes.start(role, [*ONCEBOX, role], env=self.environment | self._given(settings))
        self._roles.append((role, settings, started))
        return started

    def _given(self, settings: dict[str, object]) -> dict[str, str]:
        return {f"ONCEBOX_{name.upper()}": str(value) for name, value in (self.settings | settings).items()}

    def _running(self, role: str) -> list[RunningProcess]:
        return [process for name, _, process in self._roles if name == role and process.returncode() is None]

    def _wait_for_roles(self) -> None:
        for role, _, process in self._roles:
            if process.returncode() is None:
                process.wait_for_log(RELAY_STARTED if role == "relay" else WORKER_STARTED, timeout=40)

    # --- the agent -------------------------------------------------------------------------------------

    def save(
        self, operation_id: str, *, text: str = "Reef B recovers faster.", folder: str = "drafts"
    ) -> Enqueued:
        """Commit the wish to save a note."""
        with Session(self.engine) as session, session.begin():
            return OUTBOX.save_note(
                session, WHY, operation_id=operation_id, folder=folder, title="Finding 7", text=text
            )

    def save_many(self, operation_ids: Sequence[str]) -> None:
        """Commit that many wishes in one transaction."""
        writes = [
            Write(
                WHY,
                {"folder": "drafts", "title": "Finding", "text": f"The text of {operation_id}."},
                operation_id=operation_id,
            )
            for operation_id in operation_ids
        ]
        with Session(self.engine) as session, session.begin():
            for outcome in OUTBOX.enqueue_many(session, writes):
                assert isinstance(outcome, Enqueued), outcome

    def status(self, operation_id: str) -> OperationStatus:
        with Session(self.engine) as session:
            return OUTBOX.status(session, operation_id)

    def wait(self, operation_id: str, *, timeout: float = 20.0) -> OperationStatus:
        """What is known when it is settled, or at the end of the time."""
        return OUTBOX.wait(self.engine, operation_id, timeout=timeout)

    def drain(self, *, timeout: float = 60.0) -> None:
        """Until no operation has work left."""
        eventually(
            lambda: self.sender.live() == 0,
            timeout=timeout,
            interval=0.05,
            what=lambda: f"{self.sender.live()} operations are live: {self.sender.states()}",
        )

    def grant(self, folder: str) -> None:
        """Let the agent's principal write into the folder."""
        with self._operator() as connection:
            administration.add_grant(connection, OUTBOX.tenant, OUTBOX.principal, folder)

    @contextlib.contextmanager
    def notes_frozen_before_commit(self) -> Generator["psycopg.Connection[tuple[Any, ...]]"]:
        """Inside it, or until its connection is closed, a write of the note service waits in the middle of its
        transaction, before its commit."""
        with psycopg.connect(self.places.notes_database) as blocking:
            blocking.execute("LOCK TABLE note_version IN SHARE MODE")
            yield blocking

    def _operator(self) -> "psycopg.Connection[tuple[Any, ...]]":
        return psycopg.connect(self.places.notes_database, autocommit=True)


def _free_port() -> int:
    """A port that stays free while the note service is down: below those that the system gives to clients."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
