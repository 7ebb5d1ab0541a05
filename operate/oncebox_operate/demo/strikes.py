"""Making things fail at the right moment: while operations are in flight, and counting what was struck."""

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never, cast

from oncebox_operate.demo import statements
from oncebox_operate.demo.script import FaultKind, Script, Strike
from oncebox_operate.demo.stage import Stage
from oncebox_operate.faults.http_proxy import Barrier, Exchange, Rule

SENDS: Final = "POST /v1/notes:batch"
_ARRIVAL_S: Final = 8.0
"""Longest wait for an operation to be in flight. When none is, the fault struck nothing, and says so."""
_OUTAGE_S: Final = 1.5
"""How long a broker that is not ours is out of reach."""
_TRIES: Final = 4
"""How often a moment with an operation in flight is looked for: its worker may have given up before we strike."""
_SLOW_S: Final = (0.3, 1.1)
"""Below the time that a call may take: slow is not lost."""


@dataclass(frozen=True, slots=True)
class Struck:
    """count: how often a fault happened. in_flight: how often while at least one operation was under way."""

    count: int
    in_flight: int


@dataclass(slots=True)
class Scored:
    """Strikes of one kind as they happen."""

    count: int = 0
    in_flight: int = 0
    rules: list[Rule] = field(default_factory=list[Rule])

    def add(self, in_flight: int) -> None:
        self.count += 1
        self.in_flight += in_flight > 0

    def total(self) -> Struck:
        """With those that the network made, which strike by themselves."""
        met = [exchange for rule in self.rules for exchange in rule.struck]
        return Struck(self.count + len(met), self.in_flight + sum(map(was_under_way, met)))


class Striker:
    """Carries out the strikes of a script in a thread of its own. What is killed is started again by whoever tends it."""

    def __init__(self, stage: Stage, script: Script, tell: Callable[[str], None]) -> None:
        self._stage = stage
        self._strikes: Sequence[Strike] = script.strikes()
        self._chance = random.Random(f"strikes in detail {script.seed}")
        self._tell = tell
        self._scored = {kind: Scored() for kind in script.faults}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="strikes", daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        """The script's time begins now."""
        self._thread.start()

    def stop(self) -> None:
        """Strike no more, and let go what is held."""
        self._over.set()
        self._stage.proxy.clear_rules()
        self._thread.join(_ARRIVAL_S + 5)

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def struck(self) -> dict[FaultKind, Struck]:
        """What happened so far."""
        return {kind: scored.total() for kind, scored in self._scored.items()}

    def _run(self) -> None:
        began = time.monotonic()
        try:
            for strike in self._strikes:
                if self._over.wait(max(began + strike.at_s - time.monotonic(), 0.0)):
                    return
                self._strike(strike.kind)
        except Exception as error:  # a thread's failure must reach whoever started it
            self.failure = error

    def _strike(self, kind: FaultKind) -> None:
        proxy, scored = self._stage.proxy, self._scored[kind]
        match kind:
            case FaultKind.LOST_REPLIES:
                then = "reset" if self._chance.random() < 0.6 else "hang"
                scored.rules.append(proxy.swallow_replies(match=SENDS, then=then))
            case FaultKind.SLOW_REPLIES:
                scored.rules.append(proxy.slow_replies(self._chance.uniform(*_SLOW_S), match=SENDS))
            case FaultKind.REPEATED_REQUESTS:
                scored.rules.append(proxy.repeat_requests(match=SENDS))
            case FaultKind.KILLED_WORKERS:
                self._with_one_in_flight(kind, self._kill_worker)
            case FaultKind.RESTARTED_NOTES:
                self._with_one_in_flight(kind, self._kill_notes)
            case FaultKind.RESTARTED_BROKER:
                self._with_one_in_flight(kind, self._kill_broker)
            case _:
                assert_never(kind)

    def _with_one_in_flight(self, kind: FaultKind, strike: Callable[[Exchange], int | None]) -> None:
        """Hold a request back, or the reply to it, and strike while its worker waits for the answer."""
        for _ in range(_TRIES):
            proxy = self._stage.proxy
            hold = proxy.hold if self._chance.random() < 0.5 else proxy.hold_replies
            barrier = hold(1, match=SENDS, release_when_full=False)
            try:
                if not self._arrived(barrier):
                    return
                in_flight = strike(barrier.exchanges[0])
            finally:
                proxy.withdraw(barrier)
            if in_flight is not None:
                self._scored[kind].add(in_flight)
                return

    def _arrived(self, barrier: Barrier) -> bool:
        try:
            barrier.wait_until_full(_ARRIVAL_S)
        except TimeoutError:
            return False
        return not self._over.is_set()

    def _kill_worker(self, held: Exchange) -> int | None:
        """kill -9 of the worker whose call is held. None: it is not at work on it any more, and lives."""
        pid = self._worker_of(held)
        worker = next((worker for worker in self._stage.installation.workers if worker.pid == pid), None)
        if worker is None or not self._held_by(pid):
            return None
        self._tell(f"{worker.title}: kill -9 in the middle of a call")
        os.kill(pid, signal.SIGKILL)
        # Counted when it is dead: what its lease covers now, nobody is at work on.
        return self._held_by(pid)

    def _worker_of(self, held: Exchange) -> int:
        with self._stage.engine.connect() as connection:
            call = {"call_id": held.headers["call-id"]}
            worker = cast("str", connection.execute(statements.WORKER_OF, call).scalar_one())
        return int(worker.split(":")[1])

    def _held_by(self, pid: int) -> int:
        return self._stage.ask(statements.IN_FLIGHT_AT, pid=str(pid))

    def _kill_notes(self, held: Exchange) -> int | None:
        notes = self._stage.installation.notes
        in_flight = self._stage.ask(statements.IN_FLIGHT)
        if notes is None or notes.exit_status() is not None or not in_flight:
            return None
        self._tell("note service: kill -9 while it is being asked")
        os.kill(notes.pid, signal.SIGKILL)
        return in_flight

    def _kill_broker(self, held: Exchange) -> int | None:
        in_flight = self._stage.ask(statements.IN_FLIGHT) + self._stage.ask(statements.AT_BROKER)
        if not in_flight:
            return None
        server, network = self._stage.installation.valkey, self._stage.broker_network
        if server is not None:
            self._tell("broker: kill -9")
            os.kill(server.pid, signal.SIGKILL)
        elif network is not None:
            self._tell(f"broker: every connection cut, and none taken for {_OUTAGE_S:g} s")
            network.refuse()
            self._over.wait(_OUTAGE_S)
            network.pass_through()
        return in_flight


def was_under_way(exchange: Exchange) -> bool:
    """The receiver had answered for its operations, and a worker was still waiting for it."""
    return exchange.status == 200 and operations_in(exchange) > 0


def operations_in(exchange: Exchange) -> int:
    """How many operations a batch carried."""
    return len(cast("list[object]", json.loads(exchange.body)["items"]))  # what our workers send


def replays_in(exchange: Exchange) -> int:
    """How many operations of a batch the receiver had executed before."""
    if exchange.status != 200 or exchange.reply_body is None:
        return 0
    items = cast("list[dict[str, object]]", json.loads(exchange.reply_body)["items"])  # the wire's contract
    return sum(item.get("replayed") is True for item in items)
