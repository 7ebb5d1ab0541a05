"""Keeps what the receiver says of itself up to date in the database. Until it was seen once, nothing is claimed."""

import asyncio
import os
import random
import signal
import threading
from typing import Final

from sqlalchemy import Engine

from oncebox_destinations.note_service import NoteService
from oncebox_destinations.reads import ReadRefused, ReceiverUnreachable
from oncebox_models.calls import Capabilities
from oncebox_models.schedule import RetrySchedule
from oncebox_outbox import registry
from oncebox_outbox.engine import UNAVAILABLE, worker_engine
from oncebox_outbox.errors import OutboxError
from oncebox_outbox.registry import OtherReceiver
from oncebox_worker import process
from oncebox_worker.events import Event
from oncebox_worker.logs import Log
from oncebox_worker.safe_settings import UnsafeSettings, check_receiver
from oncebox_worker.settings import WorkerSettings

log = Log(__name__)

_EVERY_S: Final = 60.0
_WHILE_UNSEEN: Final = RetrySchedule(2.0, 15.0)


async def ask(settings: WorkerSettings) -> Capabilities:
    """Ask the receiver once, with the bounded retries of every read. Raises ReceiverUnreachable, ReadRefused."""
    client = NoteService(process.note_service_settings(settings), tries=2)
    try:
        return await client.capabilities()
    finally:
        await client.aclose()


def look(settings: WorkerSettings, engine: Engine) -> bool:
    """Ask and remember. True when the receiver is known now (whether or not it answered this time).

    Raises OtherReceiver, and UnsafeSettings when what it says contradicts our settings.
    """
    try:
        told = asyncio.run(ask(settings))
    except (ReceiverUnreachable, ReadRefused) as error:
        seen = registry.last_seen(engine, settings.destination)
        event = Event.RECEIVER_UNREACHABLE if seen else Event.RECEIVER_NEVER_SEEN
        log.warning(event, destination=settings.destination, url=settings.notes_url, error=str(error))
        if seen:
            check_receiver(settings, seen.capabilities)
        return seen is not None
    check_receiver(settings, told)
    first = registry.last_seen(engine, settings.destination) is None
    registry.see(engine, settings.destination, told)
    if first:
        log.info(Event.RECEIVER_SEEN, destination=settings.destination, receiver=told.receiver)
    return True


def start(settings: WorkerSettings) -> None:
    """Look now and then in a thread of its own, until the process ends."""
    threading.Thread(target=_watch, args=(settings,), name="receiver-watch", daemon=True).start()


def _watch(settings: WorkerSettings) -> None:
    engine = worker_engine(settings.database_url, pool_size=1, application=f"oncebox watch {os.getpid()}")
    never, misses = threading.Event(), 0
    while True:
        known = False
        try:
            known = look(settings, engine)
        except (*UNAVAILABLE, OutboxError) as error:
            log.warning(Event.DATABASE_UNREACHABLE, during="watch", error=str(error).splitlines()[0][:200])
        except (OtherReceiver, UnsafeSettings) as error:
            # Another party's keys are not ours, and unsafe numbers void the guarantees: drain and end.
            log.error(Event.RECEIVER_REFUSED, destination=settings.destination, error=str(error))
            os.kill(os.getpid(), signal.SIGTERM)
            return
        misses = 0 if known else misses + 1
        never.wait(_EVERY_S if known else _WHILE_UNSEEN.delay_s(misses - 1, random.random))
