"""The test's side of the zygote: start a program as a process of its own, hear how it ended, read what it wrote."""

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Self

from tests.proof.matrix.seams.trap import REACHED, Arm
from tests.proof.matrix.zygote import PACKET, Order
from tests.support.databases import ROOT
from tests.support.polling import eventually

_TAIL_LINES: Final = 15


class NotReached(AssertionError):
    """A victim ended, or went on and on, without coming to the point that was armed in it."""


class Fork:
    """A process that the zygote forked. `control` is the test's end of a victim's socket, None for the healthy."""

    def __init__(self, forks: "Forks", pid: int, name: str, log: Path, control: socket.socket | None) -> None:
        self._forks = forks
        self._control = control
        self._log = log
        self.pid: Final = pid
        self.name: Final = name

    @property
    def armed(self) -> bool:
        """Whether it is, or was, a victim."""
        return self._control is not None

    def wait_until_reached(self, timeout_s: float) -> None:
        """Until it says that it is at its point. Raises NotReached."""
        assert self._control is not None
        self._control.settimeout(timeout_s)
        try:
            heard = self._control.recv(len(REACHED))
        except TimeoutError:
            heard = b""
        if heard != REACHED:
            raise NotReached(f"{self} did not reach its point in {timeout_s:g} s\n{self.tail()}")

    def has_reached(self) -> bool:
        """The same, without waiting and without taking the word away."""
        assert self._control is not None
        self._control.settimeout(0)
        try:
            return self._control.recv(len(REACHED), socket.MSG_PEEK) == REACHED
        except BlockingIOError:
            return False

    def go_on(self) -> None:
        """Let a victim go on whose reply is lost."""
        assert self._control is not None
        self._control.send(b"g")

    def exit_code(self) -> int | None:
        """As `subprocess` has it: negative for a signal; None while it runs."""
        return self._forks.ended(self.pid)

    def wait(self, timeout_s: float = 20.0) -> int:
        """Its exit code."""
        eventually(
            lambda: self.exit_code() is not None,
            timeout=timeout_s,
            interval=0.005,
            what=lambda: f"{self} ends\n{self.tail()}",
        )
        code = self.exit_code()
        assert code is not None
        return code

    def freeze(self) -> None:
        """Let it do nothing until it is thawed."""
        if self.exit_code() is None:
            os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        if self.exit_code() is None:
            os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """kill -9, unless it ended already."""
        if self.exit_code() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        self.close()

    def close(self) -> None:
        if self._control is not None:
            self._control.close()

    def output(self) -> str:
        """What it wrote to standard output."""
        return _read(self._log, "out")

    def errors(self) -> str:
        """What it wrote to standard error."""
        return _read(self._log, "err")

    def wait_for(self, word: str, timeout_s: float = 20.0) -> None:
        """Until the word is in its output or its log, or it ended."""
        eventually(
            lambda: word in self.errors() or word in self.output() or self.exit_code() is not None,
            timeout=timeout_s,
            interval=0.005,
            what=lambda: f"{word} of {self}\n{self.tail()}",
        )

    def tail(self) -> str:
        lines = [*self.output().splitlines()[-_TAIL_LINES:], *self.errors().splitlines()[-_TAIL_LINES:]]
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.name} ({self.pid}, exit {self.exit_code()})"


class Forks:
    """``with Forks() as forks``: a zygote that gets ready to fork. Everything that it forked ends with it."""

    def __init__(self) -> None:
        self._codes: dict[int, int] = {}

    def __enter__(self) -> Self:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._zygote = subprocess.Popen(
                [sys.executable, "-m", "tests.proof.matrix.zygote", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
            )
        # It imports for some seconds; whoever starts the first program waits for the rest of them.
        self._ready = False
        return self

    def __exit__(self, *_: object) -> None:
        self._orders.close()
        self._zygote.kill()
        self._zygote.wait()

    def start(
        self,
        program: str,
        *arguments: str,
        environment: Mapping[str, str],
        log: Path,
        arm: Arm | None = None,
    ) -> Fork:
        """Fork a program. Files LOG.out and LOG.err are appended to."""
        fields = (
            None
            if arm is None
            else {name: None if value is None else str(value) for name, value in asdict(arm).items()}
        )
        if not self._ready:
            self._hear("ready", timeout_s=90.0)
            self._ready = True
        order = Order(program, list(arguments), dict(environment), str(log), fields)
        packet = json.dumps(asdict(order)).encode()
        control: socket.socket | None = None
        if arm is None:
            self._orders.send(packet)
        else:
            control, theirs = socket.socketpair()
            with theirs:
                socket.send_fds(self._orders, [packet], [theirs.fileno()])
        pid = self._hear("pid", timeout_s=20.0)
        return Fork(self, pid, f"{program} {' '.join(arguments[:2])}", log, control)

    def ended(self, pid: int) -> int | None:
        """The exit code of a fork that ended."""
        while self._take_in(0.0) is not None:
            pass
        return self._codes.get(pid)

    def _hear(self, word: str, *, timeout_s: float) -> int:
        end = time.monotonic() + timeout_s
        while (left_s := end - time.monotonic()) > 0:
            heard = self._take_in(left_s)
            if heard is not None and word in heard:
                return int(heard[word])
        raise AssertionError(f"the zygote did not say {word!r} within {timeout_s:g} s")

    def _take_in(self, timeout_s: float) -> dict[str, Any] | None:
        """One packet of the zygote, if one comes in time."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._orders, selectors.EVENT_READ)
            if not selector.select(timeout_s):
                return None
        packet = self._orders.recv(PACKET)
        assert packet, "the zygote is gone"
        heard: dict[str, Any] = json.loads(packet)
        if "ended" in heard:
            self._codes[heard["ended"]] = heard["code"]
        return heard


def _read(log: Path, ending: str) -> str:
    file = log.with_name(f"{log.name}.{ending}")
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
