"""Publishing to RabbitMQ: confirms, pipelined; the mandatory flag; every wait bounded.

A chunk counts as taken only when the broker acknowledged its tag. Everything else (nack, return, timeout, a lost
connection) counts as not taken; the message may be there all the same, and then a worker finds nothing to claim.
"""

import time
from collections.abc import Sequence
from typing import Any, Final

from kombu import Connection

from oncebox_worker.messages import Chunk, ChunkResult
from oncebox_worker.task_messages import chunk_of, task_message
from oncebox_worker.topology import Topology

AMQP_TRANSPORT: Final = {"read_timeout": 5, "write_timeout": 5, "connect_timeout": 4}
"""Bounds for every read and write, in seconds: a confirm timeout alone does not bound a publish."""
_CONFIRM_S: Final = 10.0
"""Longest wait for the confirms of one pass."""
_PERSISTENT: Final = 2


class AmqpPublisher:
    """One connection in confirm mode. Used by one thread; any exception means: close it and make a new one."""

    def __init__(self, connection: Connection, channel: Any, topology: Topology) -> None:
        # `channel` is py-amqp's, which carries no types: this module is the one place that touches it.
        self._connection: Final = connection
        self._channel: Final[Any] = channel
        self._topology: Final = topology
        self._next_tag = 1
        self._pending: dict[int, str] = {}
        self._failed: dict[str, str] = {}
        channel.confirm_select()
        channel.events["basic_ack"].add(self._on_ack)
        channel.events["basic_nack"].add(self._on_nack)
        channel.events["basic_return"].add(self._on_return)

    def waiting(self) -> int:
        declared = self._channel.queue_declare(self._topology.deliver.name, passive=True)
        return int(declared.message_count)

    def publish(self, chunks: Sequence[Chunk]) -> list[ChunkResult]:
        self._failed.clear()
        ids = [self._publish(chunk) for chunk in chunks]
        self._await_confirms()
        lost = dict.fromkeys(self._pending.values(), "no confirm in time")
        failed = lost | self._failed
        return [
            ChunkResult(chunk, id not in failed, failed.get(id, ""))
            for chunk, id in zip(chunks, ids, strict=True)
        ]

    def dead(self, limit: int) -> list[Chunk | None]:
        taken: list[Chunk | None] = []
        while len(taken) < limit and (message := self._channel.basic_get(self._topology.dead.name)):
            taken.append(chunk_of(message.body))
            self._channel.basic_ack(message.delivery_tag)
        return taken

    def close(self) -> None:
        self._connection.release()

    def _publish(self, chunk: Chunk) -> str:
        built = task_message(chunk)
        message = self._channel.prepare_message(
            built.body,
            content_type="application/json",
            content_encoding="utf-8",
            headers=built.headers,
            properties={**built.properties, "message_id": built.id, "delivery_mode": _PERSISTENT},
        )
        self._pending[self._next_tag] = built.id
        self._next_tag += 1
        queue = self._topology.deliver
        self._channel.basic_publish(
            message, exchange=queue.exchange.name, routing_key=queue.routing_key, mandatory=True
        )
        return built.id

    def _await_confirms(self) -> None:
        end = time.monotonic() + _CONFIRM_S
        while self._pending and (left_s := end - time.monotonic()) > 0:
            try:
                self._connection.drain_events(timeout=left_s)
            except TimeoutError:
                return

    def _on_ack(self, tag: int, multiple: bool) -> None:
        for settled in self._settled(tag, multiple):
            self._pending.pop(settled, None)

    def _on_nack(self, tag: int, multiple: bool) -> None:
        for settled in self._settled(tag, multiple):
            message_id = self._pending.pop(settled, None)
            if message_id is not None:
                self._failed[message_id] = "refused by the broker (is the queue full?)"

    def _on_return(self, _error: Exception, _exchange: str, _key: str, message: Any) -> None:
        # A return comes before its ack: the ack only says that the broker dealt with it.
        self._failed[str(message.properties.get("message_id"))] = "not routed to any queue"

    def _settled(self, tag: int, multiple: bool) -> list[int]:
        return [pending for pending in self._pending if pending <= tag] if multiple else [tag]
