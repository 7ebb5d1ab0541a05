"""PostgreSQL 18 as a child of this process: durable, on loopback, behind a password."""

import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from oncebox_operate.embedded.errors import EmbeddedError
from oncebox_operate.embedded.folder import DataFolder, wait_until_unused
from oncebox_operate.embedded.identity import RunAs, identity_for
from oncebox_operate.embedded.ports import LOOPBACK
from oncebox_operate.embedded.process import SupervisedProcess
from oncebox_operate.embedded.programs import postgres_programs
from oncebox_operate.embedded.server import EmbeddedServer

SUPERUSER = "postgres"
# sun_path has 108 bytes, the last one for NUL (unix(7)).
SOCKET_PATH_BYTES = 107
# On the command line they win over postgresql.conf, ALTER SYSTEM and a caller's wish.
DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
DEFAULTS = {
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # The server would log a row that a constraint refuses, and the rows hold notes.
    "log_error_verbosity": "terse",
}

# What ``stop()`` may be given: wait for the clients, end them (the usual one), or crash (recovery follows).
SMART, FAST, IMMEDIATE = signal.SIGTERM, signal.SIGINT, signal.SIGQUIT


class EmbeddedPostgres(EmbeddedServer):
    """``with EmbeddedPostgres(Path("data")) as server: server.url("postgres")``.

    ``settings`` are PostgreSQL's own, by name; what keeps commits durable is none of them.
    ``user_namespaces=False`` makes root use another user at once (see ``identity``).
    """

    NAME = "PostgreSQL"
    STOP_SIGNAL = FAST
    STOP_SECONDS = 30.0

    def __init__(
        self,
        data: Path,
        *,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        start_seconds: float = 60.0,
        user_namespaces: bool = True,
    ) -> None:
        super().__init__(data, port=port, start_seconds=start_seconds)
        weakened = sorted(DURABLE.keys() & (settings or {}).keys())
        if weakened:
            raise EmbeddedError(f"{', '.join(weakened)}: always on here, and not a setting; leave it out")
        self._cluster = self.data / "cluster"
        self._settings = {**DEFAULTS, **(settings or {}), **DURABLE}
        self._user_namespaces = user_namespaces
        self._run_as = RunAs()
        self._sockets = Path()

    def url(self, database: str = "postgres") -> str:
        """The address over loopback, with the superuser's password."""
        self._running()
        return f"postgresql://{SUPERUSER}:{self._password}@{LOOPBACK}:{self._port}/{quote(database, safe='')}"

    def socket_url(self, database: str = "postgres") -> str:
        """The same over the unix socket, which costs less per statement than TCP."""
        self._running()
        where = f"host={quote(str(self._sockets), safe='')}&port={self._port}"
        return f"postgresql://{SUPERUSER}:{self._password}@/{quote(database, safe='')}?{where}"

    def ensure_database(self, name: str) -> str:
        """Create the database if it is missing; its address."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            known = connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone()
            if known is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    def _prepare(self, folder: DataFolder) -> None:
        self._run_as = identity_for(self._cluster, user_namespaces=self._user_namespaces)
        if folder.created:
            self._run_as.hand_over(folder.path)
        self._run_as.require_reach(folder.path, postgres_programs() / "postgres")
        if self._cluster.exists():
            self._refuse_if_served()
            _remove_old_sockets(folder.path / "sockets")
        else:
            self._make_cluster(folder)

    def _launch(self, folder: DataFolder) -> SupervisedProcess:
        self._sockets = _socket_folder()
        self._run_as.hand_over(self._sockets)
        folder.write("sockets", str(self._sockets))
        options = {
            **self._settings,
            "listen_addresses": LOOPBACK,
            "port": str(self._port),
            "unix_socket_directories": '"' + str(self._sockets).replace('"', '""') + '"',
        }
        command = [postgres_programs() / "postgres", "-D", self._cluster]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        return self._run(command, folder, remove=self._sockets)

    def _serves(self, process: SupervisedProcess) -> bool:
        try:
            lines = (self._cluster / "postmaster.pid").read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(process.pid) and lines[7].strip() == "ready"

    def _refuse_if_served(self) -> None:
        # We hold the lock, so this is a server whose supervisor was killed, or one that somebody started
        # by hand on our cluster.
        left = wait_until_unused(self._cluster)
        if left:
            raise EmbeddedError(
                f"process {left[0]} still runs a PostgreSQL server on {self._cluster}: "
                f"end it (kill {left[0]})"
            )
        # Nobody works in the cluster. After a crash the file may name a process id that somebody else has
        # by now (in a container nearly always); PostgreSQL would refuse to start.
        (self._cluster / "postmaster.pid").unlink(missing_ok=True)

    def _make_cluster(self, folder: DataFolder) -> None:
        # In a folder of another name until it is whole: a kill in the middle leaves no half a cluster.
        unfinished = folder.path / "cluster.new"
        if unfinished.exists():
            shutil.rmtree(unfinished)
        unfinished.mkdir(mode=0o700)
        password_file = folder.write("initdb-password", self._password)
        self._run_as.hand_over(unfinished, password_file)
        command = [
            postgres_programs() / "initdb",
            *("--pgdata", unfinished, "--data-checksums", "--encoding", "UTF8"),
            # The same order and the same words on every system.
            *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"),
            *("--auth", "scram-sha-256", "--username", SUPERUSER, "--pwfile", password_file),
        ]
        process = self._run(command, folder)
        try:
            if not process.wait(self._start_seconds) or process.exit_status() != 0:
                raise process.failure(f"cannot make a PostgreSQL cluster in {self._cluster}")
        finally:
            process.stop()
            password_file.unlink()
        unfinished.rename(self._cluster)

    def _run(
        self, command: list[str | Path], folder: DataFolder, *, remove: Path | None = None
    ) -> SupervisedProcess:
        return SupervisedProcess(
            command,
            log=self.log,
            stop_signal=self.STOP_SIGNAL,
            grace_seconds=self.STOP_SECONDS,
            run_as=self._run_as.prefix,
            # A folder that every user may work in; postgres goes into its cluster by itself.
            cwd=Path("/"),
            keep_open=(folder.lock,),
            remove=remove,
        )


def _socket_folder() -> Path:
    name = "oncebox-12345678/.s.PGSQL.65535"
    for parent in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):
        short = len(os.fsencode(f"{parent}/{name}")) <= SOCKET_PATH_BYTES
        if parent and short and os.access(parent, os.W_OK):
            return Path(tempfile.mkdtemp(prefix="oncebox-", dir=parent))
    raise EmbeddedError("no folder short enough for a unix socket may be written to: set TMPDIR to one")


def _remove_old_sockets(note: Path) -> None:
    """Those of a server whose supervisor was killed."""
    if note.exists():
        shutil.rmtree(note.read_text(encoding="utf-8"), ignore_errors=True)
