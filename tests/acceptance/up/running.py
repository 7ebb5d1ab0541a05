"""`oncebox up` as a person runs it: in a folder, with a home of its own, and no variable of Oncebox's set."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support import processes
from tests.support.polling import eventually
from tests.support.processes import Processes, RunningProcess

ONCEBOX: Final = [sys.executable, "-m", "oncebox_operate.main"]
READY: Final = r"^Ready after "
ENDED: Final = r"Ended after .*The data stays in"


class Machine:
    """A machine with one person: her home, and a working folder whose name has a space and a letter beyond ASCII."""

    def __init__(self, started: Processes, folder: Path) -> None:
        self._started = started
        self.folder = folder / "Mein Ordner ü"
        self.folder.mkdir(parents=True)
        self.home = folder / "home"
        self.home.mkdir()

    @property
    def environment(self) -> dict[str, str]:
        """What every process is started with; a blank variable counts as one that is not set."""
        blank = {name: "" for name in os.environ if name.startswith("ONCEBOX_")}
        return {**blank, "HOME": str(self.home), "XDG_STATE_HOME": "", "PYTHONUNBUFFERED": "1"}

    @property
    def data(self) -> Path:
        return self.folder / ".oncebox"

    def up(self, *arguments: str, **variables: str) -> RunningProcess:
        """Start `oncebox up`; it may not be ready yet."""
        command = [*ONCEBOX, "up", *arguments]
        return self._started.start("up", command, env=self.environment | variables, cwd=self.folder)

    def ready_up(self, *arguments: str, **variables: str) -> RunningProcess:
        """The same, when it is ready."""
        running = self.up(*arguments, **variables)
        running.wait_for_log(READY, timeout=60)
        return running

    def types(
        self, *arguments: str, ends_with: int = 0, cwd: Path | None = None, **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run another command in a second terminal."""
        done = processes.run(
            [*ONCEBOX, *arguments], env=self.environment | variables, cwd=cwd or self.folder, timeout=90
        )
        said = f"oncebox {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}"
        assert done.returncode == ends_with, said
        assert "Traceback" not in done.stderr, said
        return done

    def saves(self, operation_id: str) -> dict[str, Any]:
        """Save a note and wait for it; what is known of it then."""
        wanted = (
            "--operation-id",
            operation_id,
            "--folder",
            "drafts",
            "--title",
            "Finding 7",
            "--text",
            "Reef B.",
        )
        self.types("enqueue", *wanted)
        return json.loads(self.types("wait", operation_id, "--timeout", "60s", "--json").stdout)

    def state(self) -> dict[str, Any]:
        """What a running `up` says of itself."""
        return json.loads((self.data / "up.json").read_text(encoding="utf-8"))


def children_of(up: RunningProcess) -> dict[int, str]:
    """Process ids and command lines of all that `up` started, whoever has them now."""
    lines = subprocess.run(
        ["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in lines.splitlines()]
    found = {up.pid: ""}
    while True:
        more = {
            int(pid): args for pid, parent, args in rows if int(parent) in found and int(pid) not in found
        }
        if not more:
            del found[up.pid]
            return found
        found |= more


def the_child(up: RunningProcess, pattern: str) -> int:
    """The process id of the one child whose command line matches; its supervisor is not it."""
    found = [
        pid
        for pid, args in children_of(up).items()
        if re.search(pattern, args) and "supervisor.py" not in args
    ]
    assert len(found) == 1, children_of(up)
    return found[0]


def wait_until_gone(pids: Mapping[int, str]) -> None:
    """Until none of these processes is left."""

    def left() -> list[int]:
        return [pid for pid in pids if Path(f"/proc/{pid}/cmdline").exists() and _runs(pid)]

    eventually(lambda: not left(), timeout=30, what=lambda: str({pid: pids[pid] for pid in left()}))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Terminal:
    """`oncebox up` on a terminal of 120 columns, and everything that was written to it."""

    def __init__(self, machine: Machine, *arguments: str, **variables: str) -> None:
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            [*ONCEBOX, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=machine.folder,
            env={**os.environ, **machine.environment, "TERM": "xterm", "COLUMNS": "120", **variables},
            start_new_session=True,
        )
        os.close(slave)
        os.set_blocking(self._master, False)
        self._written = b""

    @property
    def text(self) -> str:
        """All of it so far, escape sequences included."""
        try:
            while chunk := os.read(self._master, 65536):
                self._written += chunk
        except (BlockingIOError, OSError):
            # Nothing more now, or the other side has closed.
            pass
        return self._written.decode(errors="replace")

    def wait_for(self, pattern: str, *, timeout: float = 60.0) -> None:
        """Until it was written."""
        eventually(
            lambda: re.search(pattern, self.text), timeout=timeout, what=lambda: f"{pattern}\n{self.text}"
        )

    def interrupt(self) -> int:
        """Ctrl-C; the exit code."""
        self._process.send_signal(signal.SIGINT)
        return self.wait()

    def wait(self, timeout: float = 60.0) -> int:
        """Its exit code."""

        def ended() -> bool:
            # A terminal that nobody reads from fills up, and the process would wait for it.
            said = self.text
            return self._process.poll() is not None and said == self.text

        eventually(ended, timeout=timeout, what=lambda: self.text)
        return self._process.returncode

    def close(self) -> None:
        """kill -9 if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._master)
