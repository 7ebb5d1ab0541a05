"""What a strike works with: the installation, a look at both databases, its own chance, and moments to strike at."""

import json
import random
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any, Final, Literal, TypeVar

import psycopg

from oncebox_operate.faults.http_proxy import Exchange
from oncebox_operate.faults.tcp_proxy import TcpProxy
from tests.proof.chaos import eyes
from tests.proof.chaos.eyes import Eyes
from tests.proof.chaos.parties.installation import Installation
from tests.proof.chaos.parties.network import SENDS
from tests.proof.chaos.parties.spawning import Role

Value = TypeVar("Value")
Moment = Literal["request held", "reply held", "write frozen"]
MOMENTS: Final[tuple[Moment, ...]] = ("request held", "reply held", "write frozen")
_ARRIVAL_S: Final = 6.0
"""Longest wait for an operation to be in flight; the strike is tried again later."""
_POLL_S: Final = 0.01
_LOCK: Final = "lock table note_version in share mode"


@dataclass(frozen=True, slots=True)
class Blow:
    """What a strike met. in_flight: operations that were under way at its party when it struck. how: in words.
    possible: False where this machine does not allow it, ever."""

    in_flight: int
    how: str
    possible: bool = True


NOTHING: Final = Blow(0, "nothing was in flight")


@dataclass(slots=True)
class Hand:
    """One for each lane. over: no further strikes; what is broken is repaired all the same."""

    installation: Installation
    chance: random.Random
    over: Event
    sender: Eyes = field(init=False)
    notes: Eyes = field(init=False)

    def __post_init__(self) -> None:
        self.sender = Eyes(self.installation.sender_database)
        self.notes = Eyes(self.installation.notes_database)

    def close(self) -> None:
        self.sender.close()
        self.notes.close()

    def pause(self, least_s: float, most_s: float) -> float:
        """Wait for a time between the two; how long."""
        seconds = self.chance.uniform(least_s, most_s)
        time.sleep(seconds)
        return seconds

    def soon(self, look: Callable[[], Value], seconds: float = _ARRIVAL_S) -> Value | None:
        """The first answer that is more than nothing; None when the time is up or the run is over."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit and not self.over.is_set():
            if found := look():
                return found
            time.sleep(_POLL_S)
        return None

    def in_flight(self) -> int:
        """Operations that the broker or a worker has at this moment."""
        return self.sender.number(eyes.LEASED) + self.sender.number(eyes.HANDED_OVER)

    def leased_by(self, pid: int) -> list[object]:
        """The operations that a worker has."""
        return [id for (id,) in self.sender.rows(eyes.LEASED_BY, str(pid)) or ()]

    @contextmanager
    def take(self, role: Role | None) -> Generator[Role | None]:
        """The role for this strike alone; None when another has it, or it has just ended."""
        if role is None or not role.reserved.acquire(blocking=False):
            yield None
            return
        try:
            yield role if role.process.returncode() is None else None
        finally:
            role.reserved.release()

    @contextmanager
    def take_network(self, *proxies: TcpProxy) -> Generator[bool]:
        """These proxies for this strike alone; False when another has one of them."""
        with ExitStack() as taken:
            yield all(
                taken.enter_context(_unless_taken(self.installation.network.reserved(p))) for p in proxies
            )

    # --- moments ---------------------------------------------------------------------------------------------

    @contextmanager
    def moment(self, *among: Moment) -> Generator[tuple[Moment, int] | None]:
        """Inside it a call is under way, kept at one of its moments; which, and the worker whose call it is.

        None: no call came.
        """
        which = self.chance.choice(among or MOMENTS)
        held = self._write_frozen() if which == "write frozen" else self._exchange_held(which)
        with held as pid:
            yield None if pid is None else (which, pid)

    @contextmanager
    def _exchange_held(self, which: Moment) -> Generator[int | None]:
        """A request is on its way to the note service, or the answer to it on its way back."""
        proxy = self.installation.network.workers_to_notes
        hold = proxy.hold if which == "request held" else proxy.hold_replies
        barrier = hold(1, match=SENDS, release_when_full=False)
        try:
            held = self.soon(lambda: barrier.exchanges)
            yield self._worker_of(held[0]) if held else None
        finally:
            proxy.withdraw(barrier)

    @contextmanager
    def _write_frozen(self) -> Generator[int | None]:
        """A note service's write stands in the middle of its transaction."""
        blocking = self._lock_notes()
        if blocking is None:
            yield None
            return
        try:
            waits = self.soon(lambda: self.notes.number(eyes.WAITING_TO_WRITE))
            rows = self.sender.rows(eyes.ANY_LEASED) if waits else None
            yield int(rows[0][0]) if rows else None
        finally:
            # The lock goes with the connection, whatever became of the server.
            blocking.close()

    def _lock_notes(self) -> "psycopg.Connection[tuple[Any, ...]] | None":
        url = self.installation.notes_database.url
        try:
            connection = psycopg.connect(url, connect_timeout=2, options="-c lock_timeout=2000")
        except psycopg.OperationalError:
            return None
        try:
            connection.execute(_LOCK)
        except psycopg.OperationalError:
            connection.close()
            return None
        return connection

    def _worker_of(self, held: Exchange) -> int | None:
        rows = self.sender.rows(eyes.WORKER_OF, held.headers.get("call-id"))
        return int(rows[0][0]) if rows else None


def operations_in(exchange: Exchange) -> int:
    """How many operations a request of a worker carried."""
    document = json.loads(exchange.body) if exchange.body else {}
    return max((len(value) for value in document.values() if isinstance(value, list)), default=0)


@contextmanager
def _unless_taken(lock: Lock) -> Generator[bool]:
    taken = lock.acquire(blocking=False)
    try:
        yield taken
    finally:
        if taken:
            lock.release()
