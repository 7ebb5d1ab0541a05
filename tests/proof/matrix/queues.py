"""The installation's queues at the broker, as the test looks at them and empties them."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, Self

from kombu import Connection

from oncebox_worker.topology import Topology
from tests.support.polling import eventually


class Queues:
    """A channel past the product's code, which carries no types, and the names of the queues."""

    def __init__(self, channel: Any, topology: Topology) -> None:
        self.channel: Final[Any] = channel
        self.topology: Final = topology
        self._deliver: Final = topology.deliver.bind(channel)
        self._dead: Final = topology.dead.bind(channel)
        self._deliver.declare()
        self._dead.declare()

    @classmethod
    @contextmanager
    def at(cls, url: str, prefix: str) -> Generator[Self]:
        """The queues with that prefix; gone afterwards."""
        with Connection(url, heartbeat=0) as connection:
            queues = cls(connection.channel(), Topology(prefix))
            yield queues
            queues._deliver.delete()
            queues._dead.delete()

    def empty(self, *, consumers: int) -> None:
        """No message of an earlier row is left: what a dead worker held comes back first, as the worker goes.

        `consumers` are those that live.
        """
        eventually(
            lambda: self.channel.queue_declare(self._deliver.name, passive=True).consumer_count <= consumers,
            interval=0.005,
            what="the broker has missed the dead",
        )
        self._deliver.purge()
        self._dead.purge()
