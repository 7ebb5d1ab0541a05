"""The broker's exchanges and queues, declared from one place by whoever starts first."""

from dataclasses import dataclass
from typing import Final

from kombu import Exchange, Queue

_DELIVERY_LIMIT: Final = 5
"""Redeliveries of one message before the broker sets it aside. The entry itself is parked by its own count."""
_HARD_QUEUE_LIMIT: Final = 20_000
"""Messages the broker accepts at all; the relay stops long before (`queue_limit`)."""


@dataclass(frozen=True, slots=True)
class Topology:
    """Names under one prefix: `PREFIX.deliver` for chunks, `PREFIX.dead` for messages the broker gave up on."""

    prefix: str

    @property
    def deliver(self) -> Queue:
        """Chunks to deliver. A quorum queue: redelivers at once when a worker dies, and counts redeliveries."""
        name = f"{self.prefix}.deliver"
        return Queue(
            name,
            # Direct, not topic: a topic exchange serves delayed delivery only, and delays live in SQL (`consuming`).
            Exchange(name, type="direct", durable=True),
            routing_key="deliver",
            durable=True,
            queue_arguments={
                "x-queue-type": "quorum",
                "x-delivery-limit": _DELIVERY_LIMIT,
                "x-dead-letter-exchange": f"{self.prefix}.dead",
                "x-dead-letter-strategy": "at-least-once",
                # A full queue refuses a message (the relay is told) instead of dropping an older one.
                "x-overflow": "reject-publish",
                "x-max-length": _HARD_QUEUE_LIMIT,
            },
        )

    @property
    def dead(self) -> Queue:
        """Messages that were rejected or redelivered too often. The relay looks at them and takes their stamps back."""
        name = f"{self.prefix}.dead"
        return Queue(
            name,
            Exchange(name, type="fanout", durable=True),
            durable=True,
            queue_arguments={"x-queue-type": "quorum"},
        )
