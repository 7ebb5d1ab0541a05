"""A worker that at a SIGUSR1 acknowledges a message that does not exist: the broker closes its channel for that."""

import signal
from types import FrameType
from typing import Any

from celery import bootsteps

from oncebox_worker.app import app

__all__ = ["app"]

_asked: list[int] = []


def _ask(number: int, _frame: FrameType | None) -> None:
    _asked.append(number)


class Nonsense(bootsteps.StartStopStep):
    """Looks for the signal from the worker's own loop: only that may use its channel."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Any) -> None:
        """The consumer is up."""
        signal.signal(signal.SIGUSR1, _ask)
        parent.timer.call_repeatedly(0.1, self._look, (parent,))

    def _look(self, parent: Any) -> None:
        if _asked:
            _asked.clear()
            parent.task_consumer.channel.basic_ack(4_711)


app.steps["consumer"].add(Nonsense)
