"""Processes of the run, started from one thread that outlives all others, each with a log, never two at once."""

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Final, Self

from tests.support.processes import RunningProcess

_START_S: Final = 90.0
_AGAIN_S: Final = 0.3
_POLL_S: Final = 0.03


class Nursery:
    """``with Nursery(folder) as nursery``: starts processes, and kills what is left of them at the end.

    A child dies with the thread that started it (PR_SET_PDEATHSIG), and strikes come from threads that end.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nursery")
        self._living: list[RunningProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._living:
            process.reap()
        self._thread.shutdown()

    def start(self, name: str, argv: Sequence[str | Path], environment: Mapping[str, str]) -> RunningProcess:
        """Start `argv` with our environment and `environment`; its log is ``<folder>/<name>.log``."""
        return self._thread.submit(self._start, name, argv, environment).result()

    def _start(self, name: str, argv: Sequence[str | Path], environment: Mapping[str, str]) -> RunningProcess:
        self._living = [process for process in self._living if process.returncode() is None]
        process = RunningProcess(argv, log=self.folder / f"{name}.log", env=environment)
        self._living.append(process)
        return process


class Role:
    """One seat for a process that is ended and started again: ``worker-2``. `process` is who sits there now.

    A process that ends by itself is started again, as whoever runs it in earnest would do.
    """

    def __init__(
        self,
        nursery: Nursery,
        name: str,
        argv: Sequence[str | Path],
        environment: Mapping[str, str],
        is_ready: Callable[[RunningProcess], bool],
    ) -> None:
        self.name = name
        self.reserved = Lock()
        """Held by the fault that has it; others look for somebody else."""
        self.ended_by_itself: list[int] = []
        """Exit statuses of those that nobody ended."""
        self.unclean_ends: list[int] = []
        """Exit statuses other than 0 of those that were asked to end."""
        self.process: RunningProcess
        self._nursery = nursery
        self._argv = argv
        self._environment = environment
        self._is_ready = is_ready
        self._starts = 0

    @property
    def pid(self) -> int:
        return self.process.pid

    def launch(self) -> None:
        """Start it; `wait_until_ready` says when it works."""
        self._starts += 1
        self.process = self._nursery.start(f"{self.name}-{self._starts}", self._argv, self._environment)

    def wait_until_ready(self) -> None:
        """Until it works. One that does not start, since a database is away, is started again and again.

        Raises TimeoutError with the end of its log.
        """
        limit = time.monotonic() + _START_S
        while not self._is_ready(self.process):
            if time.monotonic() > limit:
                raise TimeoutError(f"{self.process} is not ready\n{self.process.tail()}")
            self.tend()
            time.sleep(_POLL_S)

    def start(self) -> None:
        """Start it and wait until it works."""
        self.launch()
        self.wait_until_ready()

    def tend(self) -> None:
        """Start it again if it has ended by itself. For whoever has it reserved."""
        status = self.process.returncode()
        if status is not None:
            self.ended_by_itself.append(status)
            time.sleep(_AGAIN_S)
            self.launch()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()

    def pause(self) -> bool:
        """SIGSTOP: it stands still in whatever it does. False: it had ended."""
        self.process.send_signal(signal.SIGSTOP)
        return _has_stopped(self.process)

    def resume(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def ask_to_end(self) -> None:
        """SIGTERM; see `end`."""
        self.process.send_signal(signal.SIGTERM)

    def end(self, seconds: float) -> None:
        """Wait until it has ended. Raises AssertionError when it has not within the time."""
        status = self.process.wait(seconds)
        if status != 0:
            self.unclean_ends.append(status)


def _has_stopped(process: RunningProcess) -> bool:
    # A signal arrives a little later than it is sent: nothing may be said of a process that still runs.
    while process.returncode() is None:
        states = {_state(task) for task in Path(f"/proc/{process.pid}/task").iterdir()}
        if states <= {"T", "t"}:
            return True
        time.sleep(_POLL_S / 10)
    return False


def _state(task: Path) -> str:
    try:
        return (task / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return "T"  # a thread that has just ended
