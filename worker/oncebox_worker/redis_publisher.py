"""Publishing to a Redis-protocol broker: no confirms and no dead letters; a command that succeeds is all there is."""

from collections.abc import Sequence
from typing import Any, Final

from kombu import Connection

from oncebox_worker.messages import Chunk, ChunkResult
from oncebox_worker.task_messages import task_message
from oncebox_worker.topology import Topology


class RedisPublisher:
    """One connection. Used by one thread; any exception means: close it and make a new one."""

    def __init__(self, connection: Connection, channel: Any, topology: Topology) -> None:
        # `channel` is kombu's virtual channel, which carries no types.
        self._connection: Final = connection
        self._channel: Final[Any] = channel
        self._topology: Final = topology

    def waiting(self) -> int:
        return int(self._channel.queue_declare(self._topology.deliver.name, passive=True).message_count)

    def publish(self, chunks: Sequence[Chunk]) -> list[ChunkResult]:
        queue = self._topology.deliver
        for chunk in chunks:
            built = task_message(chunk)
            message = self._channel.prepare_message(
                built.body,
                content_type="application/json",
                content_encoding="utf-8",
                headers=built.headers,
                properties=built.properties,
            )
            self._channel.basic_publish(message, exchange=queue.exchange.name, routing_key=queue.routing_key)
        return [ChunkResult(chunk, True) for chunk in chunks]

    def dead(self, limit: int) -> list[Chunk | None]:
        return []

    def close(self) -> None:
        self._connection.release()
