"""Valkey (the Redis protocol) as a child of this process: the broker of a machine without one."""

import contextlib
import signal
import socket
from pathlib import Path

from oncebox_operate.embedded.folder import DataFolder
from oncebox_operate.embedded.ports import LOOPBACK
from oncebox_operate.embedded.process import SupervisedProcess
from oncebox_operate.embedded.programs import valkey_server
from oncebox_operate.embedded.server import EmbeddedServer

CONFIGURATION = """\
bind {host}
port {port}
requirepass {password}
appendonly yes
save ""
# A full broker must refuse a message, never drop one.
maxmemory-policy noeviction
daemonize no
"""


class EmbeddedValkey(EmbeddedServer):
    """``with EmbeddedValkey(Path("data")) as server: server.url()``.

    What was published stays (append-only file, flushed each second).
    """

    NAME = "Valkey"
    STOP_SIGNAL = signal.SIGTERM
    STOP_SECONDS = 10.0

    def __init__(self, data: Path, *, port: int | None = None, start_seconds: float = 30.0) -> None:
        super().__init__(data, port=port, start_seconds=start_seconds)

    def url(self, database: int = 0) -> str:
        """The address over loopback, with the password."""
        self._running()
        return f"redis://:{self._password}@{LOOPBACK}:{self._port}/{database}"

    def _prepare(self, folder: DataFolder) -> None:
        """It makes its files by itself."""

    def _launch(self, folder: DataFolder) -> SupervisedProcess:
        # In a file, since a command line shows the password to every user of the machine; its folder is
        # the server's working folder, so that no path has to be quoted.
        configuration = CONFIGURATION.format(host=LOOPBACK, port=self._port, password=self._password)
        folder.write("valkey.conf", configuration)
        return SupervisedProcess(
            [valkey_server(), "valkey.conf"],
            log=self.log,
            stop_signal=self.STOP_SIGNAL,
            grace_seconds=self.STOP_SECONDS,
            cwd=self.data,
            keep_open=(folder.lock,),
        )

    def _serves(self, process: SupervisedProcess) -> bool:
        with (
            contextlib.suppress(OSError),
            socket.create_connection((LOOPBACK, self._port), 1.0) as connection,
        ):
            connection.settimeout(1.0)
            connection.sendall(f"AUTH {self._password}\r\nPING\r\n".encode())
            answer = b""
            # While it still loads its file it answers -LOADING.
            while answer.count(b"\r\n") < 2 and (received := connection.recv(256)):
                answer += received
            return answer == b"+OK\r\n+PONG\r\n"
        return False
