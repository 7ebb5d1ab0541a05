"""How fast bytes flow through a proxy and how far they get: a slow line, a trickle, an end in the middle."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

Way = Literal["requests", "replies"]
"""Which bytes: those on their way to the upstream, or those on their way back to the client."""
WAYS: Final[tuple[Way, ...]] = ("requests", "replies")
_PIECE_S: Final = 0.02
"""A trickle passes in pieces of so many seconds each."""


@dataclass(slots=True)
class Line:
    """What holds for one way of every connection: seconds that each chunk waits, and bytes a second (None: any)."""

    delay: float = 0.0
    rate: float | None = None

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """The data in pieces as the rate wants them, looked up again before each."""
        at = 0
        while at < len(data):
            size = len(data) if self.rate is None else max(1, int(self.rate * _PIECE_S))
            yield data[at : at + size]
            at += size

    async def rest_after(self, piece: bytes) -> None:
        """Wait for as long as the piece takes at the rate."""
        if self.rate is not None:
            await asyncio.sleep(len(piece) / self.rate)


@dataclass(slots=True)
class Connection:
    """An open connection of a client, and how many bytes of a way may still pass before it is cut (absent: any)."""

    task: "asyncio.Task[None]"
    left: dict[Way, int] = field(default_factory=dict[Way, int])

    def admit(self, way: Way, data: bytes) -> bytes:
        """What of the data may pass; it is counted."""
        if way not in self.left:
            return data
        passing = data[: self.left[way]]
        self.left[way] -= len(passing)
        return passing

    def is_over(self, way: Way) -> bool:
        """It is to be cut now."""
        return self.left.get(way) == 0
