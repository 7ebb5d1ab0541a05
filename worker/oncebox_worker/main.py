"""Running a relay or a worker in this process, for the `oncebox` command."""

import os
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType
from uuid import uuid4

from oncebox_worker import logs, preflight, process
from oncebox_worker.relay import Relay
from oncebox_worker.settings import RelaySettings, WorkerSettings


def run_relay(settings: RelaySettings, on_start: Callable[[], None] | None = None) -> int:
    """Run a relay until SIGTERM or SIGINT; returns the exit code. `on_start` runs once the checks have passed."""
    logs.configure(settings.log_level)
    preflight.check_relay(settings)
    stop = threading.Event()

    def finish(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, finish)
    if on_start is not None:
        on_start()
    Relay(settings).run(stop)
    return 0


def run_worker(settings: WorkerSettings, *, pool: str = "threads") -> int:
    """Run a Celery worker until SIGTERM (drains) or a second one (ends at once); returns the exit code."""
    process.use(settings)
    from oncebox_worker.app import app

    # Two workers of one node name cannot share a broker: the name is unique for each start.
    node = f"oncebox-{os.getpid()}-{uuid4().hex[:6]}@{socket.gethostname()}"
    app.worker_main(
        [
            "--quiet",
            "worker",
            f"--pool={pool}",
            f"--concurrency={settings.concurrency}",
            f"--hostname={node}",
        ]
    )
    return 0
