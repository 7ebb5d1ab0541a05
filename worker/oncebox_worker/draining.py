"""Stopping a worker without repeating work: stop taking messages, finish what is held, then leave.

Celery's own warm shutdown re-delivers finished messages under load. Here SIGTERM (or Ctrl-C) first cancels the
consumer; when nothing is held any more the worker leaves. A second one ends it at once: leases then lapse, which is honest.
"""

import os
import signal
from types import FrameType
from typing import Final

from celery import bootsteps
from celery.worker import state

from oncebox_worker.events import Event
from oncebox_worker.logs import Log

log = Log(__name__)

_LOOK_S: Final = 0.1
_QUIET_LOOKS: Final = 2
"""Looks in a row with nothing held before leaving: the last acknowledgement is on its way during the first."""


class Drain(bootsteps.StartStopStep):
    """A consumer step: SIGTERM sets a mark, and the worker's own timer does the rest outside the signal handler."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent, **_):  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
        super().__init__(parent)
        self._wanted = False
        self._consuming = False
        self._cancelled = False
        self._quiet = 0
        self._timer = None

    def start(self, parent):  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
        """The consumer is up (again, after a lost connection)."""
        self._consumer = parent
        self._consuming, self._cancelled = True, False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        self._timer = parent.timer.call_repeatedly(_LOOK_S, self._look)

    def stop(self, parent):  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
        """The consumer goes down: for good, or until the broker is back."""
        self._consuming = False
        # Celery stops every step when one failed to start, this one included.
        if self._timer is not None:
            self._timer.cancel()
        if self._wanted:
            state.should_stop = 0

    def _on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        if self._wanted:
            os.write(2, b'{"event": "worker_killed", "level": "warning"}\n')
            os._exit(1)
        self._wanted = True
        if not self._consuming:
            # Without a broker nothing is held, and no timer runs: leave.
            state.should_stop = 0

    def _look(self) -> None:
        if not self._wanted:
            return
        if not self._cancelled:
            log.info(Event.WORKER_DRAINING, held=len(state.reserved_requests))
            self._cancelled = True
            self._cancel_consumer()
        self._quiet = 0 if state.reserved_requests else self._quiet + 1
        if self._quiet >= _QUIET_LOOKS:
            log.info(Event.WORKER_DRAINED)
            state.should_stop = 0

    def _cancel_consumer(self) -> None:
        try:
            for name in list(self._consumer.app.amqp.queues.consume_from):
                self._consumer.cancel_task_queue(name)
        except self._consumer.connection_errors as error:
            # A broker that answers nothing brings no messages either.
            log.warning(Event.BROKER_UNREACHABLE, during="drain", error=repr(error)[:200])
