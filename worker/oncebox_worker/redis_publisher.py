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
        # Not passive: in this protocol an empty queue does not exist, and asking for one would be an error.
        return int(self._channel.queue_declare(self._topology.deliver.name).message_count)

    def publish(self, chunks: Sequence[Chunk]) -> list[ChunkResult]:
        for chunk in chunks:
            built = task_message(chunk)
            message = self._channel.prepare_message(
                built.body,
                content_type="application/json",
                content_encoding="utf-8",
                headers=built.headers,
                properties=built.properties,
            )
            # Straight to the queue: a broker that was flushed forgot the exchange's bindings, and would tell nobody.
            self._channel.basic_publish(message, exchange="", routing_key=self._topology.deliver.name)
        return [ChunkResult(chunk, True) for chunk in chunks]

    def dead(self, limit: int) -> list[Chunk | None]:
        return []

    def close(self) -> None:
        self._connection.release()
