"""Where exchanges wait: for each other, for whoever asked for it, or for their turn."""

import asyncio
import random
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from oncebox_operate.faults.exchanges import Exchange


class Barrier:
    """Where exchanges wait for each other, or for whoever asked for it."""

    def __init__(self, size: int, *, opens_when_full: bool, loop: asyncio.AbstractEventLoop) -> None:
        self.size = size
        self.exchanges: list[Exchange] = []
        self._opens_when_full = opens_when_full
        self._loop = loop
        self._full = threading.Event()
        self._open = asyncio.Event()

    @property
    def arrived(self) -> int:
        """How many it holds or let pass."""
        return len(self.exchanges)

    def wait_until_full(self, timeout: float = 20.0) -> None:
        """Until all that it was made for have arrived. Raises TimeoutError."""
        if not self._full.wait(timeout):
            raise TimeoutError(f"{self.arrived} of {self.size} arrived within {timeout:g} s")

    def release(self) -> None:
        """Let all that wait go on; it holds nobody any more. A client that went away does not matter: what
        was held is then a packet that arrives late."""
        self._loop.call_soon_threadsafe(self._open.set)

    async def pass_when_open(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        if self.arrived == self.size:
            self._full.set()
            if self._opens_when_full:
                self._open.set()
        await self._open.wait()


class Reordering(Barrier):
    """Where exchanges wait until all are here, and then go on one after another in another order: each when the one
    before it has its answer. `release` lets those go that are here, in the other order, too."""

    def __init__(self, size: int, *, seed: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(size, opens_when_full=True, loop=loop)
        self.passed: list[Exchange] = []
        """In the order in which the upstream got them."""
        self._seed = seed
        self._order: list[int] | None = None
        self._turn_ended = asyncio.Condition()
        self._ended: set[int] = set()

    @asynccontextmanager
    async def turn(self, exchange: Exchange) -> AsyncGenerator[None]:
        """The exchange is under way inside it, and none of the others."""
        place = self.arrived
        try:
            await self.pass_when_open(exchange)
            if self._order is None:
                self._order = other_order(self._seed, self.arrived)
            if place < len(self._order):
                before = self._order[: self._order.index(place)]
                async with self._turn_ended:
                    await self._turn_ended.wait_for(lambda: self._ended.issuperset(before))
            self.passed.append(exchange)
            yield
        finally:
            # One that is cut while it waits must not keep the others.
            async with self._turn_ended:
                self._ended.add(place)
                self._turn_ended.notify_all()


def other_order(seed: int, size: int) -> list[int]:
    """The numbers below `size` in an order that is not theirs, unless there is only one. A pure function."""
    order = list(range(size))
    chance = random.Random(f"order {seed}")
    while size > 1 and order == sorted(order):
        chance.shuffle(order)
    return order
