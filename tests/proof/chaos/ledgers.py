"""What an agent knows of its own transactions: a file that survives its kill."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

Did = Literal["begun", "committed", "rolled back"]


class AgentLedger:
    """``with AgentLedger(file) as ledger``: one process writes; `done` may be read by others afterwards."""

    def __init__(self, file: Path) -> None:
        self._file = file
        # Unbuffered: a line is one write, whole or torn at the end of the file.
        self._out = file.open("ab", buffering=0)
        if torn(file):
            self._out.write(b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._out.close()

    def note(self, number: int, did: Did) -> None:
        """Write down what became of a transaction."""
        self._out.write(json.dumps([number, did]).encode() + b"\n")

    def still_to_do(self, count: int) -> Iterator[int]:
        """The numbers below `count` that have no end yet, in order."""
        done = read(self._file)
        return (number for number in range(count) if done.get(number, "begun") == "begun")


def read(file: Path) -> dict[int, Did]:
    """The last word on each transaction; a line that was torn by a kill counts as not written."""
    last: dict[int, Did] = {}
    for line in file.read_bytes().split(b"\n"):
        try:
            number, did = json.loads(line)
        except (ValueError, TypeError):
            continue
        last[number] = did
    return last


def torn(file: Path) -> bool:
    """The last line was not finished."""
    written = file.read_bytes()
    return bool(written) and not written.endswith(b"\n")
