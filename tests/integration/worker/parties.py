"""The sender's side as its parties run it: an agent's engine, a relay, a worker, on a database and a broker."""

import json
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import psycopg
import sqlalchemy as sa
from kombu import Connection
from pydantic import SecretStr
from sqlalchemy.orm import Session

from oncebox_destinations.note_service import NoteService
from oncebox_models.calls import Capabilities
from oncebox_models.tables import WAKE_CHANNEL
from oncebox_outbox import Enqueued, Intent, OperationStatus, Outbox, Write, registry
from oncebox_outbox.engine import worker_engine
from oncebox_worker import process
from oncebox_worker.call_loop import CallLoop
from oncebox_worker.delivery import Delivery
from oncebox_worker.relay import Relay
from oncebox_worker.settings import RelaySettings, WorkerSettings
from oncebox_worker.topology import Topology
from tests.support.polling import eventually
from tests.support.processes import Processes, RunningProcess
from tests.support.tcpproxy import TcpProxy

OUTBOX: Final = Outbox(tenant="demo", principal="researcher", destination="notes")
NOWHERE: Final = "http://127.0.0.1:9"
SECRET: Final = "token-canary-4711"
CANARY: Final = "text-canary-0815"
CAPABILITIES: Final = Capabilities(
    receiver="receiver-1",
    batch_items=500,
    batch_bytes=8 * 1024 * 1024,
    admission_window_s=7 * 24 * 3600.0,
    request_limit_s=30.0,
    tombstone_retention_s=8 * 24 * 3600.0,
    server_time=datetime(2026, 1, 1, tzinfo=UTC),
)


def write(operation_id: str, *, text: str = CANARY, folder: str = "drafts", **more: Any) -> Write:
    """A `note.create` that is right in everything, but for `more`."""
    intent = Intent(run="run-42", step=operation_id, purpose="keep a finding")
    arguments = {"folder": folder, "title": "Finding", "text": text}
    return Write(intent, arguments, operation_id=operation_id, **more)


@dataclass(frozen=True, slots=True)
class Sender:
    """One sender's database, and the broker and queues that its relays and workers use."""

    database_url: str
    broker_url: str
    prefix: str
    agent: sa.Engine
    worker: sa.Engine

    def enqueue(self, *writes: Write) -> list[UUID]:
        """Enqueue valid writes in one transaction and commit."""
        with Session(self.agent) as session, session.begin():
            outcomes = OUTBOX.enqueue_many(session, writes)
        enqueued = [outcome for outcome in outcomes if isinstance(outcome, Enqueued)]
        assert len(enqueued) == len(writes), outcomes
        return [outcome.id for outcome in enqueued]

    def enqueue_named(self, *operation_ids: str) -> list[UUID]:
        return self.enqueue(*(write(operation_id) for operation_id in operation_ids))

    def status(self, operation_id: str) -> OperationStatus:
        with self.agent.connect() as connection:
            return OUTBOX.status(connection, operation_id)

    def wait_until(self, state: str, *operation_ids: str, timeout: float = 20.0) -> None:
        """Until each of these operations is in that state."""

        def reached() -> bool:
            states = {operation_id: str(self.status(operation_id).state) for operation_id in operation_ids}
            assert set(states.values()) == {state}, states
            return True

        eventually(reached, timeout=timeout, what=f"{operation_ids} are {state}")

    def rows(self, sql: str, **parameters: object) -> list[sa.Row[Any]]:
        with self.worker.connect() as connection:
            return list(connection.execute(sa.text(sql), parameters))

    def scalar(self, sql: str, **parameters: object) -> Any:
        with self.worker.connect() as connection:
            return connection.execute(sa.text(sql), parameters).scalar_one()

    def change(self, sql: str, **parameters: object) -> None:
        with self.worker.connect() as connection:
            connection.execute(sa.text(sql), parameters)

    def stamped(self) -> set[UUID]:
        """The entries that the relay holds for handed over."""
        return {
            row.id for row in self.rows("select id from oncebox.outbox_entry where dispatched_at is not null")
        }

    def attempts(self) -> int:
        return int(self.scalar("select coalesce(sum(attempts), 0) from oncebox.outbox_entry"))

    def calls(self) -> list[str]:
        """The kinds of all calls, in order of their start."""
        return [row.kind for row in self.rows("select kind from oncebox.call order by started_at, call_id")]

    def leased(self) -> int:
        return int(self.scalar("select count(*) from oncebox.outbox_entry where lease_until > now()"))

    def see_receiver(self, **changes: Any) -> None:
        """The receiver was reached once, and said this of itself."""
        registry.see(self.worker, "notes", Capabilities(**{**_as_fields(CAPABILITIES), **changes}))

    def relay_settings(self, **changes: Any) -> RelaySettings:
        given: dict[str, Any] = {
            "database_url": self.database_url,
            "broker_url": self.broker_url,
            "queue_prefix": self.prefix,
        }
        given |= changes
        return RelaySettings(**given)

    def worker_settings(
        self, notes_url: str = NOWHERE, token: str = SECRET, **changes: Any
    ) -> WorkerSettings:
        given: dict[str, Any] = {
            "database_url": self.database_url,
            "broker_url": self.broker_url,
            "queue_prefix": self.prefix,
            "notes_url": notes_url,
            "token": SecretStr(token),
        }
        given |= changes
        return WorkerSettings(**given)

    def environment(self, notes_url: str = NOWHERE, token: str = SECRET, **more: str) -> dict[str, str]:
        """What a relay's or a worker's process is started with."""
        return {
            "ONCEBOX_DATABASE_URL": self.database_url,
            "ONCEBOX_BROKER_URL": self.broker_url,
            "ONCEBOX_QUEUE_PREFIX": self.prefix,
            "ONCEBOX_NOTES_URL": notes_url,
            "ONCEBOX_TOKEN": token,
            **more,
        }

    @contextmanager
    def relay(self, **changes: Any) -> Generator[Relay]:
        """A relay that makes a pass when it is told to."""
        relay = Relay(self.relay_settings(**changes))
        try:
            yield relay
        finally:
            relay.close()

    @contextmanager
    def running_relay(self, **changes: Any) -> Generator[Callable[[], None]]:
        """A relay that runs in a thread; call what is yielded to see that it is still alive."""
        stop, failures = threading.Event(), list[BaseException]()

        def run() -> None:
            try:
                Relay(self.relay_settings(**changes)).run(stop)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run, name="relay")
        thread.start()

        def alive() -> None:
            assert not failures, failures
            assert thread.is_alive()

        try:
            yield alive
        finally:
            stop.set()
            # It may sleep for as long as its idle poll.
            self.change(f"notify {WAKE_CHANNEL}")
            thread.join(40)
            assert not thread.is_alive(), "the relay did not stop"
            assert not failures, failures

    @contextmanager
    def delivery(self, notes_url: str, token: str, **changes: Any) -> Generator[Delivery]:
        """What a worker process works with, in this process."""
        settings = self.worker_settings(notes_url, token, **changes)
        engine = worker_engine(
            settings.database_url, pool_size=settings.concurrency, application="oncebox worker test"
        )
        receiver = NoteService(process.note_service_settings(settings))
        loop = CallLoop()
        try:
            yield Delivery(engine, settings.policy(), {"notes": receiver}, loop, "test")
        finally:
            loop.run(receiver.aclose())
            engine.dispose()

    @contextmanager
    def broker(self) -> Generator[Any]:
        """A channel of our own to the broker, past our code."""
        with Connection(self.broker_url) as connection:
            yield connection.channel()

    def messages(self, queue: str = "deliver") -> int:
        """Messages that no worker holds."""
        with self.broker() as channel:
            return int(channel.queue_declare(f"{self.prefix}.{queue}", passive=True).message_count)

    def take(self, queue: str = "deliver") -> list[Any]:
        """Take all messages of a queue."""
        taken: list[Any] = []
        with self.broker() as channel:
            while message := channel.basic_get(f"{self.prefix}.{queue}", no_ack=True):
                taken.append(message)
        return taken

    def taken_ids(self) -> list[list[UUID]]:
        """Take all messages of the queue; the ids in each."""
        return [[UUID(id) for id in json.loads(message.body)[0][0]["ids"]] for message in self.take()]

    def declare(self) -> None:
        """Make the queues, as the first relay or worker does."""
        topology = Topology(self.prefix)
        with self.broker() as channel:
            topology.deliver.bind(channel).declare()
            topology.dead.bind(channel).declare()

    def end_connections(self, application: str) -> int:
        """End the database's connections of that name, as an administrator or a fail-over does."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            ended = connection.execute(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity"
                " where datname = current_database() and starts_with(application_name, %s)",
                [application],
            ).fetchall()
        return int(ended[0][0])


@contextmanager
def sender(database_url: str, broker_url: str, prefix: str) -> Generator[Sender]:
    """The parties of one sender's database; engines are closed afterwards."""
    url = sa.make_url(database_url).set(drivername="postgresql+psycopg")
    agent = sa.create_engine(url, connect_args={"application_name": "agent"})
    worker = worker_engine(database_url, pool_size=4, application="looks on")
    try:
        yield Sender(database_url, broker_url, prefix, agent, worker)
    finally:
        agent.dispose()
        worker.dispose()


def start_celery(
    processes: Processes, environment: dict[str, str], *options: str, name: str = "worker", ready: bool = True
) -> RunningProcess:
    """A worker as anybody starts one with Celery's own command."""
    arguments = ("-m", "celery", "-A", "oncebox_worker.app", "--quiet", "worker", *options)
    worker = processes.start_python(name, *arguments, env=environment)
    if ready:
        worker.wait_for_log("worker_started", timeout=30)
    return worker


def start_worker(processes: Processes, environment: dict[str, str], *, ready: bool = True) -> RunningProcess:
    """A worker as the `oncebox` command runs one."""
    code = (
        "import sys; from oncebox_worker.main import run_worker;"
        " from oncebox_worker.settings import WorkerSettings; sys.exit(run_worker(WorkerSettings()))"
    )
    worker = processes.start_python("worker", "-c", code, env=environment)
    if ready:
        worker.wait_for_log("worker_started", timeout=30)
    return worker


def start_relay(processes: Processes, environment: dict[str, str], *, ready: bool = True) -> RunningProcess:
    """A relay as the `oncebox` command runs one."""
    code = (
        "import sys; from oncebox_worker.main import run_relay;"
        " from oncebox_worker.settings import RelaySettings; sys.exit(run_relay(RelaySettings()))"
    )
    relay = processes.start_python("relay", "-c", code, env=environment)
    if ready:
        relay.wait_for_log("relay_started", timeout=30)
    return relay


def through(proxy: TcpProxy, url: str) -> str:
    """The address `url`, by way of the proxy before it."""
    host, port = proxy.upstream
    assert f"{host}:{port}" in url, url
    return url.replace(f"{host}:{port}", proxy.address)


def log_lines(process: RunningProcess) -> list[dict[str, Any]]:
    """The lines of a process's log; each must be a JSON object."""
    return [parsed(line) for line in process.log_text().splitlines()]


def parsed(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        raise AssertionError(f"not JSON: {line!r}") from None
    assert isinstance(value, dict), line
    return value


def events(process: RunningProcess) -> list[str]:
    return [line["event"] for line in log_lines(process)]


def terminate_all(processes: Sequence[RunningProcess]) -> None:
    for running in processes:
        running.send_signal(signal.SIGTERM)
    for running in processes:
        assert running.wait() == 0


def _as_fields(capabilities: Capabilities) -> dict[str, Any]:
    return {name: getattr(capabilities, name) for name in Capabilities.__slots__}
