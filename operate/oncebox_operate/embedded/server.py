"""What every embedded server has: a folder of its own, a port, a password, a start and an end."""

import signal
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from oncebox_operate.embedded.errors import EmbeddedError
from oncebox_operate.embedded.folder import DataFolder
from oncebox_operate.embedded.ports import PORT_RACES_TRIED, choose_port
from oncebox_operate.embedded.process import SupervisedProcess

START_POLL_SECONDS = 0.02


class EmbeddedServer(ABC):
    """A server whose data, log and password live in the folder ``data``.

    It runs from ``start()`` to ``stop()``, or as a context manager, and ends with this process, kill -9
    included; its data stays. A port that was not asked for is the last run's if it is free, else any
    free one. Raises ``EmbeddedError``: the folder is in use (by which process), the port is taken, or
    the start failed (with the end of the log).
    """

    NAME: ClassVar[str]
    STOP_SIGNAL: ClassVar[signal.Signals]
    STOP_SECONDS: ClassVar[float]

    def __init__(self, data: Path, *, port: int | None, start_seconds: float) -> None:
        self.data = data.absolute()
        self.log = self.data / f"{self.NAME.lower()}.log"
        self._wanted_port = port
        self._start_seconds = start_seconds
        self._folder: DataFolder | None = None
        self._process: SupervisedProcess | None = None
        self._port = 0
        self._password = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The TCP port on loopback."""
        self._running()
        return self._port

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._running().pid

    def exit_status(self) -> int | None:
        """None while the server runs; its exit status once it has ended without having been stopped."""
        return self._running().exit_status()

    def failure(self, what: str) -> EmbeddedError:
        """An error that says ``what`` and shows the end of the server's log."""
        return self._running().failure(what)

    def start(self) -> None:
        """Prepare the data if there is none, start the server, return when it serves."""
        if self._process is not None:
            raise EmbeddedError(
                f"{self.NAME} on {self.data} is already started (process {self._process.pid})"
            )
        folder = self._folder = DataFolder(self.data, what=self.NAME)
        try:
            self._password = folder.password()
            self._prepare(folder)
            self._start(folder)
        except BaseException:
            self.stop()
            raise

    def stop(self, number: signal.Signals | None = None, *, seconds: float | None = None) -> None:
        """Ask the server to end with its usual signal or the given one; after the time, end it by force.

        Nothing happens when it is not started.
        """
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number or self.STOP_SIGNAL)
            process.wait(self.STOP_SECONDS if seconds is None else seconds)
            process.stop()
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.close()

    def restart(self) -> None:
        """End what is left of it and start again on the same port: its addresses stay what they were."""
        self._wanted_port = self._port
        self.stop()
        self.start()

    @abstractmethod
    def _prepare(self, folder: DataFolder) -> None:
        """Make the data ready for a server, before there is a port."""

    @abstractmethod
    def _launch(self, folder: DataFolder) -> SupervisedProcess:
        """Run the server on ``self._port``."""

    @abstractmethod
    def _serves(self, process: SupervisedProcess) -> bool:
        """Whether it accepts work by now."""

    def _running(self) -> SupervisedProcess:
        if self._process is None:
            raise EmbeddedError(f"{self.NAME} on {self.data} is not started")
        return self._process

    def _start(self, folder: DataFolder) -> None:
        for tried in range(1, PORT_RACES_TRIED + 1):
            self._port = choose_port(self._wanted_port, folder.last_port())
            process = self._process = self._launch(folder)
            if self._wait_until_it_serves(process):
                folder.write("port", str(self._port))
                return
            failure = process.failure(f"{self.NAME} did not start on {self.data}")
            process.stop()
            self._process = None
            # Between our choice and the server's bind, somebody else may have taken the port.
            lost_the_port = self._wanted_port is None and "bind" in str(failure)
            if not lost_the_port or tried == PORT_RACES_TRIED:
                raise failure

    def _wait_until_it_serves(self, process: SupervisedProcess) -> bool:
        limit = time.monotonic() + self._start_seconds
        while process.exit_status() is None and time.monotonic() < limit:
            if self._serves(process):
                return True
            time.sleep(START_POLL_SECONDS)
        return False
