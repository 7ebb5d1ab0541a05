"""The one crash point of a victim: armed before its program starts, sprung once, told to the test before it strikes."""

import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.proof.matrix.moments import Moment, Seam

REACHED = b"reached"
"""What the test hears from the victim, as the last thing before the strike."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Where and when to strike. gate: the trap is set only once this file exists; None sets it at once."""

    seam: Seam
    point: str
    moment: Moment
    gate: Path | None = None


class Trap:
    """Asked by a seam beside each of its points. `control` leads to the test, which hears of the strike.

    Nothing is left of it after the strike: a process that lives on meets no second one.
    """

    def __init__(self, arm: Arm, control: socket.socket) -> None:
        self._arm = arm
        self._control = control
        self._lock = threading.Lock()
        self._sprung = False

    def before(self, seam: Seam, point: str) -> None:
        """Nothing of it has left the process yet."""
        if self._springs(seam, point, Moment.BEFORE):
            self._die()

    def after(self, seam: Seam, point: str) -> None:
        """Its reply has arrived, and nobody has acted on it."""
        if self._springs(seam, point, Moment.AFTER):
            self._die()

    def lost(self, seam: Seam, point: str, cut: Callable[[], object]) -> bool:
        """Whether the seam has to say that the reply is lost. `cut` ends the connection, before the test looks."""
        if not self._springs(seam, point, Moment.LOST):
            return False
        cut()
        self._control.send(REACHED)
        # The test looks at both ledgers now, and then lets the process go on.
        self._control.recv(1)
        return True

    def _springs(self, seam: Seam, point: str, moment: Moment) -> bool:
        if (seam, point, moment) != (self._arm.seam, self._arm.point, self._arm.moment):
            return False
        if self._arm.gate is not None and not self._arm.gate.exists():
            return False
        with self._lock:
            sprung, self._sprung = self._sprung, True
        return not sprung

    def _die(self) -> None:
        # What was sent stays in the socket for the test to read, whatever becomes of the sender.
        self._control.send(REACHED)
        os.kill(os.getpid(), signal.SIGKILL)
