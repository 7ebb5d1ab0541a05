"""The relay: takes due entries from the outbox and hands them to the broker. Any number may run; there is no leader.

An entry is stamped in one committed statement, then published. What the broker did not take loses its stamp again;
a stamp that led to no claim within `redispatch_s` counts as none. So a crash anywhere here costs only time.
"""

import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final

import psycopg
from amqp.exceptions import AMQPError
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from oncebox_models.schedule import RetrySchedule
from oncebox_outbox import claiming, settling
from oncebox_outbox.claiming import Due
from oncebox_outbox.engine import UNAVAILABLE, worker_engine
from oncebox_outbox.errors import RetryTransaction
from oncebox_worker import publishing
from oncebox_worker.events import Event
from oncebox_worker.logs import Log
from oncebox_worker.messages import Chunk, accepted_ids
from oncebox_worker.publishing import Publisher
from oncebox_worker.settings import RelaySettings
from oncebox_worker.waking import Wakeup, pauses

log = Log(__name__)

_UPKEEP_S: Final = 2.0
"""Between two looks at what settles without a call, and at the broker's dead letters."""
_UPKEEP_LIMIT: Final = 500
_FULL_SCAN_S: Final = 1.0
"""Longest time without a scan from the beginning: an entry of a slow transaction lies behind the low mark."""
_OUTAGE: Final = RetrySchedule(0.2, 5.0)
_BROKER_ERRORS: Final = (OSError, KombuError, AMQPError, RedisError)


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass did: operations handed over, settled as never sent, parked as poison; `full`: more is due."""

    published: int = 0
    unsent: int = 0
    parked: int = 0
    full: bool = False


class BrokerUnreachable(Exception):
    """The broker did not answer, or dropped the connection."""


class Relay:
    """One relay. `run` loops; `run_once` makes one pass and returns counts."""

    def __init__(self, settings: RelaySettings) -> None:
        self._settings: Final = settings
        self._policy: Final = settings.policy()
        self._engine: Final = worker_engine(settings.database_url, pool_size=2, application="oncebox relay")
        self._wakeup: Final = Wakeup(settings.database_url)
        self._publisher: Publisher | None = None
        self._low_mark: datetime | None = None
        self._scanned_at = 0.0
        self._upkeep_at = 0.0

    def run(self, stop: threading.Event) -> None:
        """Make passes until `stop` is set: at once while there is work, else at a wake-up or the idle poll."""
        failures = 0
        soon: Iterator[float] = pauses()
        log.info(Event.RELAY_STARTED, queue=self._settings.queue_prefix)
        while not stop.is_set():
            try:
                done = self.run_once()
                failures = 0
                if done.full:
                    continue
                if done.published:
                    soon = pauses()
                if (pause_s := next(soon, None)) is not None:
                    stop.wait(pause_s)
                elif self._wakeup.wait(self._settings.idle_poll_s):
                    soon = pauses()
            except (*UNAVAILABLE, psycopg.OperationalError, RetryTransaction) as error:
                # A server that became read-only keeps its connections: only new ones find the new primary.
                self._engine.dispose()
                log.warning(Event.DATABASE_UNREACHABLE, during="relay", error=_brief(error))
                stop.wait(_OUTAGE.delay_s(failures, random.random))
                failures += 1
            except BrokerUnreachable as error:
                log.warning(Event.BROKER_UNREACHABLE, error=_brief(error))
                stop.wait(_OUTAGE.delay_s(failures, random.random))
                failures += 1
        self.close()
        log.info(Event.RELAY_STOPPED)

    def run_once(self) -> Pass:
        """One pass. Raises BrokerUnreachable, and what the database raises; nothing is spent then."""
        unsent, parked = self._upkeep()
        publisher = self._connected()
        try:
            if publisher.waiting() >= self._settings.queue_limit:
                log.debug(Event.QUEUE_FULL, limit=self._settings.queue_limit)
                return Pass(unsent=unsent, parked=parked)
        except _BROKER_ERRORS as error:
            raise self._lost(error) from error
        due = self._due()
        full = len(due) == self._settings.pass_limit
        published = self._publish(publisher, due) if due else 0
        return Pass(published, unsent, parked, full)

    def _due(self) -> list[Due]:
        """Stamp what is due. Below the mark all was stamped just now; a full scan looks there again now and then."""
        if self._low_mark is None or time.monotonic() - self._scanned_at > _FULL_SCAN_S:
            self._low_mark, self._scanned_at = None, time.monotonic()
        due = claiming.dispatch(
            self._engine, self._policy, low_mark=self._low_mark, limit=self._settings.pass_limit
        )
        # With room to spare the next scan starts from the beginning: it is short, and misses nothing.
        self._low_mark = due[-1].ready_at if len(due) == self._settings.pass_limit else None
        return due

    def close(self) -> None:
        """Close all connections."""
        self._wakeup.close()
        self._disconnect()
        self._engine.dispose()

    def _publish(self, publisher: Publisher, due: Sequence[Due]) -> int:
        chunks = chunks_of(due, self._settings.chunk)
        try:
            results = publisher.publish(chunks)
        except _BROKER_ERRORS as error:
            # The connection goes first: should the database be away, too, nobody uses it again.
            lost = self._lost(error)
            claiming.undispatch(self._engine, [entry.id for entry in due], due[0].dispatched_at)
            raise lost from error
        left = [result for result in results if not result.accepted]
        if left:
            ids = [id for result in left for id in result.chunk.ids]
            log.warning(Event.PUBLISH_FAILED, operations=len(ids), reason=left[0].reason)
            # Confirms that never came leave the connection in doubt, and the others would come back at once.
            lost = self._lost(BrokerUnreachable(left[0].reason))
            claiming.undispatch(self._engine, ids, due[0].dispatched_at)
            raise lost
        count = accepted_ids(results)
        log.info(Event.CHUNK_PUBLISHED, chunks=len(chunks), operations=count)
        return count

    def _upkeep(self) -> tuple[int, int]:
        """Now and then: settle what needs no call, park poison, look at what the broker set aside."""
        if time.monotonic() < self._upkeep_at:
            return 0, 0
        unsent = settling.settle_unsent(self._engine, limit=_UPKEEP_LIMIT)
        parked = settling.park_poison(self._engine, self._policy, limit=_UPKEEP_LIMIT)
        if unsent:
            log.info(Event.SETTLED_UNSENT, operations=len(unsent))
        for id in parked:
            log.error(Event.PARKED_POISON, id=id)
        self._take_back_dead()
        # A full batch means more is waiting; an exception before this line means the same.
        busy = _UPKEEP_LIMIT in (len(unsent), len(parked))
        self._upkeep_at = time.monotonic() + (0.0 if busy else _UPKEEP_S)
        return len(unsent), len(parked)

    def _take_back_dead(self) -> None:
        """A dead message delivered nothing: its entries lose their stamp and are handed over again."""
        if self._publisher is None:
            return
        try:
            dead = self._publisher.dead(_UPKEEP_LIMIT)
        except _BROKER_ERRORS as error:
            raise self._lost(error) from error
        for chunk in dead:
            taken_back = claiming.undispatch(self._engine, chunk.ids, chunk.dispatched_at) if chunk else 0
            log.warning(Event.DEAD_MESSAGE, readable=chunk is not None, operations=taken_back)

    def _connected(self) -> Publisher:
        if self._publisher is None:
            try:
                self._publisher = publishing.connect(self._settings)
            except _BROKER_ERRORS as error:
                raise BrokerUnreachable(_brief(error)) from error
        return self._publisher

    def _lost(self, error: Exception) -> BrokerUnreachable:
        self._disconnect()
        return BrokerUnreachable(_brief(error))

    def _disconnect(self) -> None:
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            try:
                publisher.close()
            except _BROKER_ERRORS as error:
                log.debug(Event.BROKER_UNREACHABLE, during="close", error=_brief(error))


def chunks_of(due: Sequence[Due], size: int) -> list[Chunk]:
    """Group entries by destination and kind of call, oldest first, at most `size` to a chunk; suspects alone."""
    chunks: list[Chunk] = []
    ordered = sorted(due, key=lambda entry: (entry.destination, entry.kind, entry.alone))
    for (destination, _, alone), entries in groupby(ordered, key=lambda e: (e.destination, e.kind, e.alone)):
        group = list(entries)
        step = 1 if alone else size
        for start in range(0, len(group), step):
            part = group[start : start + step]
            ids = tuple(entry.id for entry in part)
            chunks.append(Chunk(destination=destination, ids=ids, dispatched_at=part[0].dispatched_at))
    return chunks


def _brief(error: Exception) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}"
