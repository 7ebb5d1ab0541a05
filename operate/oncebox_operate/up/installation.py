"""An installation: database, broker, note service, relay and workers, started in order, tended, ended in reverse.

Every process is a child that ends with this one, whichever way it goes (`embedded.supervisor`).
"""

import signal
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from oncebox_operate.embedded import EmbeddedPostgres, EmbeddedValkey
from oncebox_operate.embedded.ports import LOOPBACK, choose_port
from oncebox_operate.embedded.server import EmbeddedServer
from oncebox_operate.options import DEFAULT_DESTINATION
from oncebox_operate.up import brokers, databases, preparing
from oncebox_operate.up.databases import Databases
from oncebox_operate.up.folder import InstallationFolder
from oncebox_operate.up.plan import FOLDER, NOTES_PORT, PRINCIPAL, TENANT, Plan, Reporter
from oncebox_operate.up.role_process import NOTES, RELAY, WORKER, Role, RoleProcess
from oncebox_operate.up.state_file import Places
from oncebox_operate.up.tending import Tended

DATABASE: Final = "database"
BROKER: Final = "broker"


class Installation:
    """`start`, then `tend` again and again, then `stop`, which also clears away half a start. Used by one thread."""

    def __init__(self, plan: Plan, reporter: Reporter) -> None:
        self._plan = plan
        self._reporter = reporter
        self._folder: InstallationFolder | None = None
        self.postgres: EmbeddedPostgres | None = None
        self.valkey: EmbeddedValkey | None = None
        self.notes: RoleProcess | None = None
        self.relay: RoleProcess | None = None
        self.workers: list[RoleProcess] = []
        self._tended: list[Tended] = []

    def start(self) -> Places:
        """Bring everything up. Raises Failure, EmbeddedError (with the end of a log) and FolderInUse."""
        folder = self._folder = InstallationFolder(self._plan.data)
        found = self._start_database(folder)
        broker_url, queue_prefix = self._start_broker(folder)
        with self._timed("tables") as detail:
            preparing.make_tables(found)
            detail.append("both databases are at this version")
        with self._timed("access") as detail:
            token = preparing.let_in(folder, found.notes)
            detail.append(f"{TENANT}/{PRINCIPAL} may write into {FOLDER}")
        port = self._notes_port()
        url = f"http://{LOOPBACK}:{port}"
        places = Places(
            notes_url=url,
            database_url=found.sender.libpq,
            notes_database_url=found.notes.libpq,
            broker_url=broker_url,
            queue_prefix=queue_prefix,
            token=token,
            tenant=TENANT,
            principal=PRINCIPAL,
            folder=FOLDER,
            data=str(folder.path),
        )
        self._start_roles(folder, places, port)
        return places

    def tend(self) -> None:
        """Look at every part once; what ended is started again. Raises PartLost when that is of no use."""
        for part in self._tended:
            if news := part.look():
                self._reporter.said(news)

    def stop(self, hurry: Callable[[], bool]) -> None:
        """Workers first, then relay, note service, broker and database. `hurry`: end the rest by force."""
        self._drain(
            "worker" if len(self.workers) == 1 else f"{len(self.workers)} workers", self.workers, hurry
        )
        self.workers = []
        for part in (self.relay, self.notes):
            if part is not None:
                self._drain(part.title, [part], hurry)
        self.relay = self.notes = None
        for title, server in ((BROKER, self.valkey), (DATABASE, self.postgres)):
            if server is not None:
                self._stop_server(title, server)
        self.valkey = self.postgres = None
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def _start_database(self, folder: InstallationFolder) -> Databases:
        given = self._plan.database
        with self._timed(DATABASE) as detail:
            if given is not None:
                found = databases.beside(given)
                databases.ensure(found)
                detail.append(f"{found.sender} (given)")
                return found
            server = self.postgres = EmbeddedPostgres(folder.path / "postgres")
            server.start()
            self._tended.append(Tended(DATABASE, server))
            detail.append(f"PostgreSQL at {LOOPBACK}:{server.port}")
            return databases.of_embedded(server)

    def _start_broker(self, folder: InstallationFolder) -> tuple[str, str]:
        """Its URL, and what the names of our queues there begin with."""
        given = self._plan.broker_url
        with self._timed(BROKER) as detail:
            if given is not None:
                brokers.check(given)
                detail.append(f"{brokers.shown(given)} (given)")
                return given, folder.queue_prefix()
            server = self.valkey = EmbeddedValkey(folder.path / "valkey")
            server.start()
            self._tended.append(Tended(BROKER, server))
            detail.append(f"Valkey at {LOOPBACK}:{server.port}")
            return server.url(), folder.queue_prefix()

    def _notes_port(self) -> int:
        port = choose_port(self._plan.notes_port, NOTES_PORT)
        if self._plan.notes_port is None and port != NOTES_PORT:
            self._reporter.said(f"Port {NOTES_PORT} is taken: the note service listens at {port}.")
        return port

    def _start_roles(self, folder: InstallationFolder, places: Places, port: int) -> None:
        environment = {
            **self._plan.environment,
            **places.variables(),
            "ONCEBOX_DESTINATION": DEFAULT_DESTINATION,
            "ONCEBOX_NOTES_HOST": LOOPBACK,
            "ONCEBOX_NOTES_PORT": str(port),
            **self._plan.variables,
        }
        workers_environment = {**environment, "ONCEBOX_NOTES_URL": self._plan.detour(places.notes_url)}

        def role(kind: Role, title: str, name: str) -> RoleProcess:
            of_role = workers_environment if kind is WORKER else environment
            return RoleProcess(kind, title, of_role, folder.log(name), (folder.lock,))

        self.notes = role(NOTES, "note service", "notes")
        self.relay = role(RELAY, "relay", "relay")
        self._launch([self.notes, self.relay], {"note service": f"at {places.notes_url}"})
        self.workers = [
            role(WORKER, f"worker {number}", f"worker-{number}")
            for number in range(1, self._plan.workers + 1)
        ]
        # After the note service: a worker that never saw it would begin with a look in vain.
        self._launch(self.workers, {})

    def _launch(self, parts: Sequence[RoleProcess], details: dict[str, str]) -> None:
        """Start them side by side, and wait for all. Raises EmbeddedError for the first that does not come up."""
        for part in parts:
            part.launch()
            self._tended.append(Tended(part.title, part))

        def wait(part: RoleProcess) -> None:
            with self._timed(part.title) as detail:
                part.wait_until_ready()
                detail.append(details.get(part.title, f"process {part.pid}"))

        with ThreadPoolExecutor(max(len(parts), 1)) as pool:
            waiting = [pool.submit(wait, part) for part in parts]
        for one in waiting:
            one.result()

    def _drain(self, title: str, parts: Sequence[RoleProcess], hurry: Callable[[], bool]) -> None:
        if not parts:
            return
        self._reporter.stopping(title)
        began = time.monotonic()
        for part in parts:
            part.send_signal(signal.SIGTERM)
        in_time = [part.drain(hurry) for part in parts]
        held = ": what it held is taken up when its lease has lapsed" if parts == self.workers else ""
        detail = "" if all(in_time) else f"ended by force{held}"
        self._reporter.stopped(title, time.monotonic() - began, detail)

    def _stop_server(self, title: str, server: EmbeddedServer) -> None:
        self._reporter.stopping(title)
        began = time.monotonic()
        server.stop()
        self._reporter.stopped(title, time.monotonic() - began, "")

    @contextmanager
    def _timed(self, part: str) -> Generator[list[str]]:
        """Tells that a part starts, and that it is ready with what the block put into the list."""
        self._reporter.starting(part)
        began, detail = time.monotonic(), list[str]()
        yield detail
        self._reporter.ready(part, time.monotonic() - began, " ".join(detail))
