"""Real processes for tests: each with a log, waited for with a limit, and always reaped."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.polling import eventually

TAIL_LINES = 40


class RunningProcess:
    """A started process with its own process group; standard output and error go to ``log``."""

    def __init__(
        self,
        argv: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.argv = [str(part) for part in argv]
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*_die_with_us(), *self.argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def returncode(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def log_text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def tail(self, lines: int = TAIL_LINES) -> str:
        return "\n".join(self.log_text().splitlines()[-lines:])

    def wait_for_log(self, pattern: str, *, timeout: float = 20.0, count: int = 1) -> "re.Match[str]":
        """The ``count``-th match of the regular expression in the log; fails at once when the process ends."""

        def found() -> "re.Match[str] | None":
            # Asked first: what it wrote before it ended must still be seen.
            running = self.returncode() is None
            matches = list(re.finditer(pattern, self.log_text(), re.MULTILINE))
            if len(matches) >= count:
                return matches[count - 1]
            if not running:
                raise ProcessEndedError(self)
            return None

        match = eventually(
            found, timeout=timeout, what=lambda: f"{pattern!r} in the log of {self}\n{self.tail()}"
        )
        assert match is not None
        return match

    def wait_for_port(self, port: int, *, host: str = "127.0.0.1", timeout: float = 20.0) -> None:
        """Until something listens there; fails at once when the process ends."""

        def listens() -> bool:
            self._require_running()
            try:
                socket.create_connection((host, port), 1.0).close()
            except OSError:
                return False
            return True

        eventually(listens, timeout=timeout, what=lambda: f"port {port} of {self}\n{self.tail()}")

    def wait_for_http(self, url: str, *, status: int = 200, timeout: float = 20.0) -> None:
        """Until a GET answers with the status; fails at once when the process ends."""

        def answers() -> bool:
            self._require_running()
            try:
                with urllib.request.urlopen(url, timeout=2.0) as reply:
                    return bool(reply.status == status)
            except urllib.error.HTTPError as error:
                error.close()
                return error.code == status
            except OSError:
                return False

        eventually(answers, timeout=timeout, what=lambda: f"{url} of {self}\n{self.tail()}")

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self, timeout: float = 20.0) -> int:
        """Its exit status; fails with the end of its log when it goes on running."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self} still runs after {timeout:g} s\n{self.tail()}") from None

    def terminate(self, *, timeout: float = 20.0) -> int:
        """SIGTERM, then its exit status."""
        self._process.terminate()
        return self.wait(timeout)

    def kill(self) -> None:
        """kill -9 for this process alone; its children live on as they would in an accident."""
        self._process.kill()
        self._process.wait()

    def reap(self) -> None:
        """kill -9 for all that is left of its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def _require_running(self) -> None:
        if self.returncode() is not None:
            raise ProcessEndedError(self)

    def __str__(self) -> str:
        return f"process {self.pid} ({' '.join(self.argv)})"


class ProcessEndedError(Exception):
    """A process ended while a test waited for something of it."""

    def __init__(self, process: RunningProcess) -> None:
        super().__init__(
            f"{process} ended with {process.returncode()}; the end of its log:\n{process.tail()}"
        )


class Processes:
    """Starts processes, with logs in one folder, and reaps them all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.started: list[RunningProcess] = []

    def start(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> RunningProcess:
        """Start ``argv`` with our environment plus ``env``; its log is ``<folder>/<name>.log``."""
        log = self._folder / f"{name}.log"
        number = 1
        while log.exists():
            number += 1
            log = self._folder / f"{name}-{number}.log"
        process = RunningProcess(argv, log=log, env=env, cwd=cwd)
        self.started.append(process)
        return process

    def start_python(
        self, name: str, *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> RunningProcess:
        """The same for this Python: ``start_python("relay", "-m", "oncebox_operate", "relay")``."""
        return self.start(name, [sys.executable, *arguments], env=env, cwd=cwd)

    def reap(self) -> None:
        for process in reversed(self.started):
            process.reap()


def run(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 60.0,
    stdin: str = "",
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end; whatever its exit status is, it is the caller's to assert."""
    return subprocess.run(
        [str(part) for part in argv],
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        timeout=timeout,
        check=False,
    )


def _die_with_us() -> list[str]:
    # Should pytest itself be killed, no server of a test stays behind.
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
