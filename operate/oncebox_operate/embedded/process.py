"""A server process that ends with us: started through ``supervisor.py``, watched, asked, stopped."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from oncebox_operate.embedded import supervisor
from oncebox_operate.embedded.errors import EmbeddedError

LOG_LINES_SHOWN = 20
LOG_ROTATED_ABOVE_BYTES = 10 * 1024 * 1024
# A server needs none of our tokens and none of the PG… variables that would change its settings.
ENVIRONMENT_PASSED_ON = ("HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "TMPDIR")


class SupervisedProcess:
    """One run of ``command``, its output appended to ``log``.

    It ends when this process ends in any way, kill -9 included: its supervisor sees the pipe close or
    the parent change. Should the supervisor be killed as well, the kernel sends the server
    ``stop_signal``. ``keep_open`` are descriptors (a lock) that live as long as the supervisor;
    ``remove`` is a folder that goes with the server. ``environment`` is all that it gets; by default
    the little that a server needs.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        stop_signal: signal.Signals,
        grace_seconds: float,
        run_as: Sequence[str] = (),
        cwd: Path | None = None,
        keep_open: Sequence[int] = (),
        remove: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if log.exists() and log.stat().st_size > LOG_ROTATED_ABOVE_BYTES:
            log.replace(log.with_name(f"{log.name}.1"))
        self.log = log
        self._supervisor_seconds = grace_seconds + 15
        with log.open("ab") as output:
            self._log_offset = output.tell()
            self._supervisor = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", supervisor.__file__),
                    *(str(os.getpid()), str(int(stop_signal)), str(grace_seconds), str(remove or "-")),
                    *run_as,
                    *_die_with_supervisor(stop_signal),
                    *command,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                bufsize=0,
                cwd=cwd,
                env=_of_a_server() if environment is None else environment,
                pass_fds=keep_open,
                # Ctrl-C in a terminal goes to a whole process group: the server must outlast our drain.
                start_new_session=True,
            )
        assert self._supervisor.stdout is not None
        self.pid = int(self._supervisor.stdout.readline() or 0)

    def exit_status(self) -> int | None:
        """None while it runs; then its exit status (128 + n: ended by signal n)."""
        return self._supervisor.poll()

    def send_signal(self, number: signal.Signals) -> None:
        """Pass a signal on to the server; one that has already ended gets none."""
        assert self._supervisor.stdin is not None
        try:
            self._supervisor.stdin.write(b"%d\n" % number)
        except BrokenPipeError:
            return

    def wait(self, seconds: float) -> bool:
        """True when it ended within the time."""
        try:
            self._supervisor.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> int:
        """End it, by force at last, and reap it. Its exit status."""
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        self._supervisor.stdin.close()
        if not self.wait(self._supervisor_seconds):
            self._supervisor.kill()
        self._supervisor.stdout.close()
        return self._supervisor.wait()

    def output(self) -> str:
        """What this run wrote to its log so far."""
        with self.log.open("rb") as output:
            output.seek(self._log_offset)
            return output.read().decode(errors="replace")

    def failure(self, what: str) -> EmbeddedError:
        """``what`` went wrong, with the last lines that this run wrote to its log."""
        lines = self.output().splitlines()[-LOG_LINES_SHOWN:]
        shown = "\n".join(f"    {line}" for line in lines) or "    (it wrote nothing)"
        return EmbeddedError(f"{what}\nThe last lines of its log, {self.log}:\n{shown}")


def _of_a_server() -> dict[str, str]:
    return {name: os.environ[name] for name in ENVIRONMENT_PASSED_ON if name in os.environ}


def _die_with_supervisor(stop_signal: signal.Signals) -> list[str]:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return []
    return [setpriv, "--pdeathsig", stop_signal.name.removeprefix("SIG"), "--"]
