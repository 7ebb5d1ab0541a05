"""An installation for a demonstration: with a network that can fail, short times, and nothing left of it afterwards."""

import secrets
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import psycopg
from psycopg import sql
from sqlalchemy import Engine, TextClause

from oncebox_operate import failures
from oncebox_operate.database_failures import Server
from oncebox_operate.embedded import EmbeddedError
from oncebox_operate.embedded.ports import choose_port
from oncebox_operate.faults.http_proxy import FaultProxy
from oncebox_operate.faults.tcp_proxy import TcpProxy
from oncebox_operate.ledger import Key, NotesLedger
from oncebox_operate.up import brokers, databases
from oncebox_operate.up.installation import Installation
from oncebox_operate.up.plan import PRINCIPAL, TENANT, Plan, Reporter
from oncebox_operate.up.state_file import Places
from oncebox_outbox import Outbox
from oncebox_outbox.engine import worker_engine

# Short, so that a person waits for a failure and not for the clock. The shortest lease that a worker accepts is its
# call timeout and 20 s more.
_QUICK: Final = {
    "ONCEBOX_CALL_TIMEOUT_S": "1.5",
    "ONCEBOX_CONNECT_TIMEOUT_S": "1",
    "ONCEBOX_LEASE_S": "21.5",
    "ONCEBOX_RETRY_BASE_S": "0.2",
    "ONCEBOX_RETRY_CEILING_S": "1",
    "ONCEBOX_REDISPATCH_S": "4",
    "ONCEBOX_IDLE_POLL_S": "0.5",
    "ONCEBOX_CONCURRENCY": "4",
    "ONCEBOX_NOTES_POOL_SIZE": "16",
}
CALL_TIMEOUT_S: Final = 1.5
_PORTS: Final = {"amqp": 5672, "redis": 6379}


class Stage:
    """``with Stage(...) as stage``: everything runs. Afterwards all is gone, unless `keep` was called: its databases,
    its queues at a given broker, its folder."""

    def __init__(
        self,
        *,
        workers: int,
        database: Server | None,
        broker_url: str | None,
        environment: Mapping[str, str],
        reporter: Reporter,
    ) -> None:
        self.data = Path(tempfile.gettempdir()) / f"oncebox-demo-{secrets.token_hex(4)}"
        self._workers = workers
        self._database = None if database is None else _of_our_own(database)
        self._broker_url = broker_url
        self._environment = environment
        self._reporter = reporter
        self._stack = ExitStack()
        self._kept = False
        self.outbox: Final = Outbox(tenant=TENANT, principal=PRINCIPAL)
        self.broker_network: TcpProxy | None = None
        self.installation: Installation
        self.places: Places
        self.proxy: FaultProxy
        self.engine: Engine
        self.ledger: NotesLedger

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException as error:
            if isinstance(error, EmbeddedError):
                # Its message names a log.
                self.keep()
            self.close()
            raise
        return self

    def _start(self) -> None:
        plan = Plan(
            data=self.data,
            workers=self._workers,
            database=self._database,
            broker_url=self._through_network(self._broker_url),
            # The usual one belongs to an `up`, and nobody needs to know this one.
            notes_port=choose_port(None, None),
            # Settings of other installations are none of ours.
            environment={n: value for n, value in self._environment.items() if not n.startswith("ONCEBOX_")},
            variables=_QUICK,
            detour=self._through_proxy,
        )
        self.installation = Installation(plan, self._reporter)
        self._stack.callback(self._clean_up)
        self._stack.callback(self.installation.stop, lambda: False)
        self.places = self.installation.start()
        self.engine = worker_engine(self.places.database_url, pool_size=4, application="oncebox demo")
        self._stack.callback(self.engine.dispose)
        self.ledger = self._stack.enter_context(NotesLedger.connected(self.places.notes_database_url))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End everything; a second time does nothing."""
        self._stack.close()

    def keep(self) -> None:
        """Leave data and logs for whoever looks into what went wrong."""
        self._kept = True

    def left(self) -> str | None:
        """What was kept, in words; None when nothing was."""
        if not self._kept:
            return None
        made = (
            []
            if self._database is None
            else [str(one.url.database) for one in databases.beside(self._database)]
        )
        return " ".join(
            [f"Its data and logs are in {self.data}.", *(f"Database {name} is kept." for name in made)]
        )

    def ask(self, statement: TextClause, **parameters: object) -> int:
        """The one number that a question to the sender's database has for an answer."""
        with self.engine.connect() as connection:
            return int(connection.execute(statement, parameters).scalar_one())

    def notes_of(self, operation_id: str) -> int:
        """How many notes the note service's database holds under a key."""
        return self.ledger.counted([Key(TENANT, PRINCIPAL, operation_id)], [True]).notes

    def _through_proxy(self, notes_url: str) -> str:
        self.proxy = self._stack.enter_context(FaultProxy(notes_url))
        return self.proxy.url

    def _through_network(self, given: str | None) -> str | None:
        """A broker that was given to us is not ours to restart: its network is, and it looks the same from here."""
        if given is None:
            return None
        address = urlsplit(given)
        if address.hostname is None or address.scheme not in _PORTS:
            raise failures.usage(
                f"The broker {brokers.shown(given)} cannot be made to fail here: its connections are encrypted.",
                "Give one as amqp://user@host:5672 or redis://host:6379, or none to have one started.",
            )
        port = address.port or _PORTS[address.scheme]
        network = self.broker_network = self._stack.enter_context(TcpProxy(f"{address.hostname}:{port}"))
        user = address.netloc.rpartition("@")[0]
        return address._replace(netloc=f"{user}@{network.address}" if user else network.address).geturl()

    def _clean_up(self) -> None:
        if self._kept:
            return
        prefix = self.data / "queue-prefix"
        if self._broker_url is not None and prefix.exists():
            brokers.delete_queues(self._broker_url, prefix.read_text(encoding="utf-8").strip())
        if self._database is not None:
            _drop(self._database)
        shutil.rmtree(self.data, ignore_errors=True)


def _of_our_own(given: Server) -> Server:
    """A database of this demonstration alone on a given server."""
    return Server(given.url.set(database=f"oncebox_demo_{secrets.token_hex(4)}"), given.variable)


def _drop(server: Server) -> None:
    maintenance = Server(server.url.set(database="postgres"), server.variable)
    # A server that is away keeps them: there is nothing more to be done about it.
    with (
        suppress(psycopg.OperationalError),
        psycopg.connect(maintenance.libpq, autocommit=True, connect_timeout=5) as connection,
    ):
        for one in databases.beside(server):
            name = sql.Identifier(one.url.database or "")
            connection.execute(sql.SQL("drop database if exists {} with (force)").format(name))
