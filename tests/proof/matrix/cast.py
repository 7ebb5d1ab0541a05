"""The processes of a row: the victim, and the healthy ones, which are kept from row to row.

Healthy relays and workers are frozen until the row's victim was struck, or needs them; what was killed is started again.
"""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.proof.matrix.forks import Fork, Forks
from tests.proof.matrix.queues import Queues
from tests.proof.matrix.seams.trap import Arm


class Cast:
    """One process a role: the healthy one, or the row's victim in its place. And commands, as many as are wanted.

    `environment` is what each of them is told; logs go to `folder`, named after the row.
    """

    def __init__(self, forks: Forks, environment: Mapping[str, str], folder: Path, queues: Queues) -> None:
        self._forks: Final = forks
        self._environment: Final = dict(environment)
        self._folder: Final = folder
        self._queues: Final = queues
        self._numbers: Final = itertools.count()
        self._row = ""
        self._roles: dict[str, Fork] = {}
        self._started: list[Fork] = []

    def begin(self, row: str) -> None:
        """Nobody is at work."""
        self._row = row
        self.rest()

    def start(
        self,
        program: str,
        *arguments: str,
        arm: Arm | None = None,
        changed: Mapping[str, str | None] | None = None,
    ) -> Fork:
        """A process of the row; `changed` variables are set, or taken away by None."""
        given = self._environment | dict(changed or {})
        environment = {name: value for name, value in given.items() if value is not None}
        log = self._folder / f"{self._row}-{next(self._numbers)}-{program}"
        started = self._forks.start(program, *arguments, environment=environment, log=log, arm=arm)
        self._started.append(started)
        return started

    def relay(self, arm: Arm | None = None) -> Fork:
        """A relay at work: the one that is there, else a new one. A victim takes its place."""
        return self._role("relay", "oncebox", ("relay",), arm)

    def worker(self, arm: Arm | None = None) -> Fork:
        """A worker at work, in the same way. A victim meets no message that is older than its row."""
        if arm is not None:
            self._end("worker")
            self._queues.empty(consumers=0)
        return self._role("worker", "oncebox", ("worker",), arm)

    def new_worker(self) -> Fork:
        """A worker that starts now."""
        self._end("worker")
        return self.worker()

    def note_service(self, arm: Arm | None = None) -> Fork:
        """A note service that answers, in the same way."""
        return self._role("notes", "oncebox_notes", ("serve",), arm)

    def freeze_all_but(self, *roles: str) -> None:
        """Nobody else is at work; the note service answers always."""
        for role, fork in self._roles.items():
            if role not in (*roles, "notes"):
                fork.freeze()

    def role_of(self, fork: Fork) -> str:
        """`relay`, `worker`, `notes`; empty for a program that does one thing."""
        return next((role for role, running in self._roles.items() if running is fork), "")

    def be_whole(self) -> None:
        """One healthy process of each role: whatever was killed is started again, as its supervisor would."""
        self.note_service().wait_for('"ready"')
        self.relay()
        self.worker()

    def end_all(self) -> None:
        """kill -9 for everything that runs."""
        for fork in self._started:
            fork.kill()
        self._started.clear()
        self._roles.clear()

    def consumers(self) -> int:
        """How many workers there are, frozen or not."""
        return int("worker" in self._roles)

    def rest(self) -> None:
        """Victims go, those that lived on, too; the healthy wait, frozen, but for the note service."""
        kept = {
            role: fork for role, fork in self._roles.items() if not fork.armed and fork.exit_code() is None
        }
        for fork in self._started:
            if fork not in kept.values():
                fork.kill()
        for role, fork in kept.items():
            if role != "notes":
                fork.freeze()
        self._roles, self._started = kept, list(kept.values())

    def tails(self) -> str:
        """The ends of the logs of the row's processes."""
        return "\n".join(f"--- {fork}\n{fork.tail()}" for fork in self._started)

    def _role(self, role: str, program: str, arguments: tuple[str, ...], arm: Arm | None) -> Fork:
        if arm is not None:
            self._end(role)
        running = self._roles.get(role)
        if running is None or running.exit_code() is not None:
            running = self._roles[role] = self.start(program, *arguments, arm=arm)
        running.thaw()
        return running

    def _end(self, role: str) -> None:
        if (running := self._roles.pop(role, None)) is not None:
            running.kill()
