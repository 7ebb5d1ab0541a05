"""Asking everybody all the time while the run goes on; what they say is recorded, and judged afterwards."""

import random
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import httpx2
from sqlalchemy import Engine, create_engine, make_url

from tests.proof.chaos.agent import OUTBOX, writes
from tests.proof.chaos.agents import AGENTS, Agents
from tests.proof.chaos.parties.installation import Installation
from tests.proof.chaos.wishes import PRINCIPAL, TENANT, Wish, wish
from tests.proof.history.asking import Asker
from tests.proof.history.recorder import Recorder
from tests.proof.history.statements import AbsentSaid, Key, NoAnswer

_HTTP_S: Final = 3.0
_WAIT_S: Final = 2.0
# Pauses between two questions of one kind, in seconds. A command is a process of its own and costs the most.
_EVERY_S: Final = {
    "status": 0.06,
    "receiver": 0.15,
    "enqueue": 0.5,
    "cancel": 0.4,
    "wait": 0.3,
    "metrics": 1.0,
    "commands": 3.0,
}
_UNKNOWN: Final = 0.05
"""Share of questions about operations that never were."""


class Witnesses:
    """``with Witnesses(installation, agents, folder)``: each way of asking has a thread of its own.

    failures: what was raised and is no failure to answer.
    """

    def __init__(self, installation: Installation, agents: Agents, statements: Path) -> None:
        self.failures: list[BaseException] = []
        self._installation = installation
        self._agents = agents
        self._recorder = Recorder(statements)
        self._over = threading.Event()
        ways: dict[str, Callable[[Asker, random.Random], Callable[[], object]]] = {
            "status": self._status,
            "receiver": self._receiver,
            "enqueue": self._enqueue,
            "cancel": self._cancel,
            "wait": self._wait,
            "metrics": self._metrics,
            "commands": self._commands,
        }
        self._threads = [
            threading.Thread(target=self._run, args=(name, way), name=f"witness {name}", daemon=True)
            for name, way in ways.items()
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)
        self._recorder.close()

    def _run(self, name: str, way: Callable[[Asker, random.Random], Callable[[], object]]) -> None:
        chance = random.Random(f"witness {self._agents.size.seed} {name}")
        try:
            ask = way(Asker(self._recorder, f"witness {name}"), chance)
            while not self._over.wait(_EVERY_S[name] * chance.uniform(0.5, 1.5)):
                ask()
        except BaseException as error:  # a thread's failure must reach whoever started it
            self.failures.append(error)

    # --- ways of asking --------------------------------------------------------------------------------------

    def _status(self, asker: Asker, chance: random.Random) -> Callable[[], object]:
        engine = self._engine()
        return lambda: asker.status(engine, OUTBOX, self._some_id(chance))

    def _wait(self, asker: Asker, chance: random.Random) -> Callable[[], object]:
        engine = self._engine()
        return lambda: asker.wait(engine, OUTBOX, self._some_id(chance), timeout_s=_WAIT_S)

    def _receiver(self, asker: Asker, chance: random.Random) -> Callable[[], object]:
        authorised = {"Authorization": f"Bearer {self._installation.token}"}
        # Closed with the process.
        http = httpx2.Client(base_url=self._installation.notes_url, headers=authorised, timeout=_HTTP_S)
        return lambda: asker.receiver(http, _key(self._some_id(chance)))

    def _enqueue(self, asker: Asker, chance: random.Random) -> Callable[[], object]:
        """Somebody else wants the same again: of operations that are there, since what is not there would be made."""
        engine = self._engine()

        def ask() -> None:
            one = self._some_wish(chance)
            place = chance.randrange(len(one.operation_ids))
            (known,) = asker.status(engine, OUTBOX, one.operation_ids[place])
            if not isinstance(known, AbsentSaid | NoAnswer):
                asker.enqueue(engine, OUTBOX, writes(one)[place], _key(one.operation_ids[place]))

        return ask

    def _cancel(self, asker: Asker, chance: random.Random) -> Callable[[], object]:
        """Of an operation that has just been enqueued, or is under way, or of unknown outcome."""
        engine = self._engine()

        def ask() -> None:
            one = self._some_wish(chance, newest=chance.random() < 0.4)
            asker.cancel(engine, OUTBOX, chance.choice(one.operation_ids))

        return ask

    def _metrics(self, asker: Asker, chance: random.Random) -> Callable[[], object]:
        return lambda: asker.metrics(self._installation.metrics_url)

    def _commands(self, asker: Asker, chance: random.Random) -> Callable[[], object]:
        environment = self._installation.environment

        def ask() -> None:
            key = _key(self._some_id(chance))
            match chance.choice(["status", "wait", "lag"]):
                case "status":
                    asker.command("status", key, environment)
                case "wait":
                    asker.command("wait", key, environment, "--timeout", f"{_WAIT_S:g}s")
                case _:
                    asker.lag_command(environment)

        return ask

    # --- what is asked about ---------------------------------------------------------------------------------

    def _some_id(self, chance: random.Random) -> str:
        if chance.random() < _UNKNOWN:
            return f"never-{chance.randrange(10**9)}"
        return chance.choice(self._some_wish(chance).operation_ids)

    def _some_wish(self, chance: random.Random, *, newest: bool = False) -> Wish:
        """Mostly a recent one: that is where something happens."""
        now = self._agents.now_at()
        back = 0.0 if newest else chance.expovariate(1 / (8 * self._agents.pace))
        number = int(max(min(now, self._agents.count - 1) - back, 0.0))
        return wish(self._agents.size.seed, chance.randrange(AGENTS), number)

    def _engine(self) -> Engine:
        url = make_url(self._installation.sender_database.url).set(drivername="postgresql+psycopg")
        return create_engine(url, pool_size=1, pool_pre_ping=True, connect_args={"connect_timeout": 3})


def _key(operation_id: str) -> Key:
    return Key(TENANT, PRINCIPAL, operation_id)
