"""One process of ours as a child: the note service, a relay, a worker."""

import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from oncebox_operate.embedded import EmbeddedError
from oncebox_operate.embedded.process import SupervisedProcess

_START_S: Final = 60.0
_POLL_S: Final = 0.05
_ORPHAN_S: Final = 8.0
"""How long it may take to end when we were killed, before it is ended by force: less than the next start waits for it."""


@dataclass(frozen=True, slots=True)
class Role:
    """A kind of process. `ready` is in its log once it works; `drain_s` is the longest that its orderly end may take."""

    name: str
    arguments: tuple[str, ...]
    ready: str
    drain_s: float


# -P: nothing is imported from the working folder, which may hold a `celery.py` of somebody's own.
NOTES: Final = Role("notes", ("-m", "oncebox_notes", "serve"), '"event": "ready"', 40.0)
RELAY: Final = Role("relay", ("-m", "oncebox_operate.main", "relay"), '"relay_started"', 15.0)
WORKER: Final = Role("worker", ("-m", "oncebox_operate.main", "worker"), '"worker_started"', 60.0)


class RoleProcess:
    """A process of a role, one run after another. It ends with us, kill -9 included."""

    def __init__(
        self, role: Role, title: str, environment: Mapping[str, str], log: Path, keep_open: Sequence[int]
    ) -> None:
        self.role = role
        self.title = title
        self.log = log
        self._environment = environment
        self._keep_open = keep_open
        self._process: SupervisedProcess | None = None

    @property
    def pid(self) -> int:
        """Its process id; 0 when it was never started."""
        return self._process.pid if self._process else 0

    def launch(self) -> None:
        """Begin a run, and do not wait for it."""
        self._process = SupervisedProcess(
            [sys.executable, "-P", *self.role.arguments],
            log=self.log,
            stop_signal=signal.SIGTERM,
            grace_seconds=_ORPHAN_S,
            keep_open=self._keep_open,
            environment=self._environment,
            cwd=self.log.parent,
        )

    def wait_until_ready(self) -> None:
        """Raises EmbeddedError with the end of its log when it ends instead, or takes too long."""
        process, limit = self._running(), time.monotonic() + _START_S
        while not self.is_ready():
            if process.exit_status() is not None:
                raise process.failure(f"{self.title.capitalize()} did not start: {self.ended()}.")
            if time.monotonic() > limit:
                raise process.failure(f"{self.title.capitalize()} was not ready within {_START_S:g} s.")
            time.sleep(_POLL_S)

    def is_ready(self) -> bool:
        """Whether this run works by now."""
        return self.role.ready in self._running().output()

    def exit_status(self) -> int | None:
        """None while it runs."""
        return self._running().exit_status()

    def failure(self, what: str) -> EmbeddedError:
        """An error that says `what` and shows the end of its log."""
        return self._running().failure(what)

    def ended(self) -> str:
        """How this run ended, in words."""
        return how_it_ended(self._running().exit_status())

    def send_signal(self, number: signal.Signals) -> None:
        """Pass a signal on to it."""
        if self._process is not None:
            self._process.send_signal(number)

    def restart(self) -> None:
        """Clear away the run that ended, and begin another."""
        self._running().stop()
        self.launch()

    def drain(self, hurry: Callable[[], bool]) -> bool:
        """Wait for the end it was asked for, and reap it; False when it had to be ended by force."""
        process, self._process = self._process, None
        if process is None:
            return True
        limit = time.monotonic() + self.role.drain_s
        while not process.wait(_POLL_S) and time.monotonic() < limit and not hurry():
            pass
        in_time = process.exit_status() is not None
        if not in_time:
            process.send_signal(signal.SIGKILL)
        process.stop()
        return in_time

    def _running(self) -> SupervisedProcess:
        if self._process is None:
            raise EmbeddedError(f"the {self.title} was not started")
        return self._process


def how_it_ended(status: int | None) -> str:
    """An exit status (128 + n: by signal n) in words."""
    if status is None:
        return "still runs"
    if status > 128:
        try:
            return f"ended by {signal.Signals(status - 128).name}"
        except ValueError:
            pass
    return f"ended with exit code {status}"
