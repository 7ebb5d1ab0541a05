"""What a worker process holds once: its settings, and the Delivery with its engine, HTTP client and event loop.

Built at first use and again after a fork: sockets must not be shared with a parent process.
"""

import os
import socket
import threading
from typing import Final
from uuid import uuid4

from oncebox_destinations.note_service import NoteService
from oncebox_destinations.settings import NoteServiceSettings
from oncebox_outbox import registry
from oncebox_outbox.engine import worker_engine
from oncebox_worker.call_loop import CallLoop
from oncebox_worker.delivery import Delivery
from oncebox_worker.settings import WorkerSettings

_lock: Final = threading.Lock()
_settings: list[WorkerSettings] = []
_deliveries: dict[int, Delivery] = {}


def use(settings: WorkerSettings) -> None:
    """Set this process's settings before anything is built."""
    _settings[:] = [settings]


def settings() -> WorkerSettings:
    """The settings given to `use`, else those of the environment. Raises pydantic's ValidationError."""
    if not _settings:
        use(WorkerSettings())  # pyright: ignore[reportCallIssue] (fields come from the environment)
    return _settings[0]


def delivery() -> Delivery:
    """This process's Delivery."""
    with _lock:
        if os.getpid() not in _deliveries:
            _deliveries.clear()
            _deliveries[os.getpid()] = _build(settings())
        return _deliveries[os.getpid()]


def note_service_settings(settings: WorkerSettings) -> NoteServiceSettings:
    """How this worker talks to the note service."""
    return NoteServiceSettings(
        base_url=settings.notes_url,
        token=settings.token,
        call_timeout_s=settings.call_timeout_s,
        connect_timeout_s=settings.connect_timeout_s,
        max_connections=settings.concurrency * 3,
    )


def _build(settings: WorkerSettings) -> Delivery:
    name = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:6]}"
    engine = worker_engine(
        settings.database_url, pool_size=settings.concurrency, application=f"oncebox worker {os.getpid()}"
    )
    seen = registry.last_seen(engine, settings.destination)
    receiver = NoteService(note_service_settings(settings), seen=seen.capabilities if seen else None)
    return Delivery(engine, settings.policy(), {settings.destination: receiver}, CallLoop(), name)
