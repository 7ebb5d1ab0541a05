"""Parts that end by themselves are started again, with growing delays; one that keeps ending ends the whole."""

import time
from collections.abc import Callable
from typing import Final, Protocol

from oncebox_operate.embedded import EmbeddedError
from oncebox_operate.up.role_process import how_it_ended

_FIRST_DELAY_S: Final = 0.5
_LONGEST_DELAY_S: Final = 15.0
_HEALTHY_S: Final = 60.0
"""After so long a run, an end is a new misfortune and not one more of the same."""
_ENDS_IN_A_ROW: Final = 6


class Part(Protocol):
    """What can be looked at and started again."""

    def exit_status(self) -> int | None: ...

    def failure(self, what: str) -> EmbeddedError: ...

    def restart(self) -> None: ...


class PartLost(Exception):
    """A part keeps ending; the message has the end of its log."""


class Tended:
    """One part under watch. `look` is called again and again by one thread."""

    def __init__(self, title: str, part: Part, clock: Callable[[], float] = time.monotonic) -> None:
        self.title = title
        self._part = part
        self._clock = clock
        self._ends = 0
        self._began = clock()
        self._due: float | None = None

    def look(self) -> str | None:
        """What a person should know of it, if anything happened. Raises PartLost."""
        if self._due is not None:
            return self._start_again() if self._clock() >= self._due else None
        status = self._part.exit_status()
        return None if status is None else self._again(how_it_ended(status), self._part.failure)

    def _again(self, how: str, failure: Callable[[str], EmbeddedError]) -> str:
        now = self._clock()
        self._ends = 1 if now - self._began > _HEALTHY_S else self._ends + 1
        if self._ends >= _ENDS_IN_A_ROW:
            raise PartLost(
                str(
                    failure(
                        f"{self.title.capitalize()} keeps ending ({self._ends} times in a row, at last: {how})."
                    )
                )
            )
        delay_s = min(_FIRST_DELAY_S * 2 ** (self._ends - 1), _LONGEST_DELAY_S)
        self._due = now + delay_s
        return f"{self.title}: {how}; starts again in {delay_s:g} s"

    def _start_again(self) -> str:
        self._due, self._began = None, self._clock()
        try:
            self._part.restart()
        except EmbeddedError as error:
            failed = error
            return self._again(
                f"did not start ({str(failed).splitlines()[0]})",
                lambda what: EmbeddedError(f"{what}\n{failed}"),
            )
        return f"{self.title}: started again"
