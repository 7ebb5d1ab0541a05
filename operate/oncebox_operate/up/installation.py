"""An installation: database, broker, note service, relay and workers, started in order, tended, ended in reverse.

Every process is a child that ends with this one, whichever way it goes (`embedded.supervisor`).
"""

import signal
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from oncebox_operate.embedded import EmbeddedError, EmbeddedPostgres, EmbeddedValkey
from oncebox_operate.embedded.ports import LOOPBACK, PORT_RACES_TRIED, choose_port, is_free
from oncebox_operate.embedded.server import EmbeddedServer
from oncebox_operate.options import DEFAULT_DESTINATION
from oncebox_operate.up import brokers, databases, preparing
from oncebox_operate.up.databases import Databases
from oncebox_operate.up.folder import InstallationFolder
from oncebox_operate.up.plan import FOLDER, NOTES_PORT, PRINCIPAL, TENANT, Plan, Reporter
from oncebox_operate.up.role_process import NOTES, RELAY, WORKER, RoleProcess
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
        wanted = Places(
            notes_url=self._notes_url(),
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
        places = self._start_notes(folder, wanted)
        self._start_relay_and_workers(folder, places)
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

    def _notes_url(self) -> str:
        port = choose_port(self._plan.notes_port, NOTES_PORT)
        if self._plan.notes_port is None and port != NOTES_PORT:
            self._reporter.said(f"Port {NOTES_PORT} is taken: the note service listens at {port}.")
        return f"http://{LOOPBACK}:{port}"

    def _start_notes(self, folder: InstallationFolder, wanted: Places) -> Places:
        """The places with its address: another port when somebody else took the one that we chose before it could bind."""
        places = wanted
        for _ in range(PORT_RACES_TRIED - 1):
            try:
                self._try_notes(folder, places)
            except EmbeddedError:
                port = int(places.notes_url.rpartition(":")[2])
                if self._plan.notes_port is not None or is_free(port):
                    raise
                self._tended.pop()
                places = replace(places, notes_url=self._notes_url())
            else:
                return places
        self._try_notes(folder, places)
        return places

    def _try_notes(self, folder: InstallationFolder, places: Places) -> None:
        environment = self._environment(places)
        notes = self.notes = RoleProcess(
            NOTES, "note service", environment, folder.log("notes"), (folder.lock,)
        )
        try:
            self._launch([notes], {"note service": f"at {places.notes_url}"})
        except EmbeddedError:
            notes.drain(lambda: True)
            self.notes = None
            raise

    def _start_relay_and_workers(self, folder: InstallationFolder, places: Places) -> None:
        # After the note service: a worker that never saw it would begin with a look in vain.
        relay, environment = folder.log("relay"), self._environment(places)
        self.relay = RoleProcess(RELAY, "relay", environment, relay, (folder.lock,))
        detoured = {**environment, "ONCEBOX_NOTES_URL": self._plan.detour(places.notes_url)}
        self.workers = [
            RoleProcess(WORKER, f"worker {n}", detoured, folder.log(f"worker-{n}"), (folder.lock,))
            for n in range(1, self._plan.workers + 1)
        ]
        self._launch([self.relay, *self.workers], {})

    def _environment(self, places: Places) -> dict[str, str]:
        return {
            **self._plan.environment,
            **places.variables(),
            "ONCEBOX_DESTINATION": DEFAULT_DESTINATION,
            "ONCEBOX_NOTES_HOST": LOOPBACK,
            "ONCEBOX_NOTES_PORT": places.notes_url.rpartition(":")[2],
            **self._plan.variables,
        }

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
