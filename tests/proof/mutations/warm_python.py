"""Our end of a warm Python (see `forking`): one at a time it runs pytest in a folder, and is replaced when it hangs."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

_FORKING: Final = Path(__file__).with_name("forking.py")


@dataclass(frozen=True, slots=True)
class Request:
    """One run of pytest: its arguments, where, with which environment, and the file for all that it prints."""

    folder: str
    environment: Mapping[str, str]
    arguments: Sequence[str]
    log: str


class WarmPython:
    """Starts when it is first used. Not for two threads at once, but for `close`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def run(self, request: Request, *, timeout_s: float) -> int | None:
        """The exit code of pytest; None when it did not end in time, or was ended from outside."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(asdict(request)).encode() + b"\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], timeout_s)
            answer = process.stdout.readline() if ready else b""
        except BrokenPipeError:
            answer = b""
        if not answer:
            self._end()
            return None
        return int(answer)

    def close(self) -> None:
        """End it, and what it runs at this moment."""
        self._closed = True
        self._end()

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._closed:
            raise RuntimeError("closed")
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, _FORKING],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
                | {"PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,
            )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
