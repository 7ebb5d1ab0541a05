"""Statements in files: one file a process, one line a statement, written at once, so that a kill loses nothing said."""

import os
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pydantic import TypeAdapter

from tests.proof.history.statements import Said, Statement

_STATEMENTS: Final = TypeAdapter(Statement)
_SUFFIX: Final = ".jsonl"


class Recorder:
    """``with Recorder(folder) as recorder``: make one in each process; its threads may share it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / f"{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"
        # Unbuffered: a line is one write, whole or torn at the end of the file.
        self._out = self.file.open("xb", buffering=0)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def record(self, who: str, asked_at: float, answered_at: float, body: Said) -> None:
        """Write down one statement; see `Statement`."""
        line = _STATEMENTS.dump_json(Statement(who, asked_at, answered_at, body)) + b"\n"
        with self._lock:
            self._out.write(line)

    def close(self) -> None:
        """Nothing can be recorded after it."""
        self._out.close()


def read(folder: Path) -> Iterator[Statement]:
    """All that was recorded in a folder. Raises ValueError for a line that no recorder wrote.

    The last line of a process that was killed in the middle of writing it is left out.
    """
    for file in sorted(folder.glob(f"*{_SUFFIX}")):
        with file.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    yield _STATEMENTS.validate_json(line)
