"""One run of `oncebox up`, from its first line to the last: signals, and what happens in which order."""

import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Final

from rich.text import Text

from oncebox_operate import shapes
from oncebox_operate.durations import shown
from oncebox_operate.output import Output
from oncebox_operate.up import state_file
from oncebox_operate.up.installation import Installation
from oncebox_operate.up.live_counts import LiveCounts
from oncebox_operate.up.plan import Plan
from oncebox_operate.up.screen import Screen
from oncebox_operate.up.state_file import Places

_TICK_S: Final = 0.5
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Run:
    """`to_its_end` returns after Ctrl-C (or SIGTERM, SIGHUP), when everything has ended in order.

    Raises Failure, EmbeddedError and PartLost, everything ended, too.
    """

    def __init__(self, plan: Plan, screen: Screen, output: Output) -> None:
        self._plan = plan
        self._screen = screen
        self._output = output
        self._installation = Installation(plan, screen)
        self._starting = True
        self._wanted = threading.Event()
        self._hurry = threading.Event()

    def to_its_end(self) -> None:
        for number in _SIGNALS:
            signal.signal(number, self._on_signal)
        began = time.monotonic()
        self._screen.begin(str(self._plan.data.absolute()))
        try:
            places = self._installation.start()
            self._starting = False
            state_file.write(Path(places.data), places, state_file.user_state_folder(self._plan.environment))
            self._tell(places, time.monotonic() - began)
            self._watch(places)
        except KeyboardInterrupt:
            self._wanted.set()
        except BaseException:
            # What went wrong is the last thing to be read.
            self._screen.mute()
            raise
        finally:
            self._starting = False
            self._stop()

    def _tell(self, places: Places, seconds: float) -> None:
        if self._output.json:
            self._output.data(shape(places), Text)
        self._screen.up(places, seconds, _typed_command())

    def _watch(self, places: Places) -> None:
        counts = LiveCounts(places.database_url)
        try:
            while not self._wanted.wait(_TICK_S):
                self._installation.tend()
                self._screen.live(counts.look())
        finally:
            counts.close()

    def _stop(self) -> None:
        began = time.monotonic()
        self._screen.said("Finishing what is under way; Ctrl-C again ends it at once.")
        self._installation.stop(self._hurry.is_set)
        took = shown(time.monotonic() - began)
        self._screen.said(f"Ended after {took}. The data stays in {self._plan.data.absolute()}.")

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._starting:
            self._starting = False
            raise KeyboardInterrupt
        if self._wanted.is_set():
            self._hurry.set()
        self._wanted.set()


def shape(places: Places) -> shapes.Up:
    """What `up --json` prints."""
    return {
        "notes_url": places.notes_url,
        "database_url": places.database_url,
        "notes_database_url": places.notes_database_url,
        "broker_url": places.broker_url,
        "queue_prefix": places.queue_prefix,
        "token": places.token,
        "tenant": places.tenant,
        "principal": places.principal,
        "folder": places.folder,
        "data": places.data,
    }


def _typed_command() -> str:
    """How a person reaches this command: by its name where that is found, else as it was typed."""
    typed = sys.argv[0]
    found = shutil.which("oncebox") is not None or Path(typed).name != "oncebox"
    return "oncebox" if found else os.path.relpath(typed)
