"""Processes whose wall clock is wrong, by a small library of ours that is loaded before all others."""

import subprocess
from pathlib import Path
from typing import Final

_SOURCE: Final = Path(__file__).parents[1] / "skewed_clock.c"


class Skew:
    """Compiles the library into `folder`. Raises CalledProcessError where there is no C compiler."""

    def __init__(self, folder: Path) -> None:
        self._library = folder / "skewed_clock.so"
        command = ["cc", "-O2", "-shared", "-fPIC", "-o", self._library, _SOURCE]
        subprocess.run(command, check=True, capture_output=True)

    def environment(self, seconds: int) -> dict[str, str]:
        """Variables for a process whose clock shall be so many seconds ahead; none for 0."""
        if seconds == 0:
            return {}
        return {"LD_PRELOAD": str(self._library), "CLOCK_SKEW_SECONDS": str(seconds)}
