"""Handing chunks to the broker, whichever it is: what the relay asks of a connection, and how one is made."""

from collections.abc import Sequence
from typing import Final, Protocol

from kombu import Connection

from oncebox_worker.amqp_publisher import AMQP_TRANSPORT, AmqpPublisher
from oncebox_worker.celery_config import REDIS_TRANSPORT
from oncebox_worker.messages import Chunk, ChunkResult
from oncebox_worker.redis_publisher import RedisPublisher
from oncebox_worker.settings import RelaySettings
from oncebox_worker.topology import Topology

_CONNECT_S: Final = 4


class Publisher(Protocol):
    """A connection to the broker. Any exception of its methods means: close it, make a new one."""

    def waiting(self) -> int:
        """Messages in the queue that no worker holds."""
        ...

    def publish(self, chunks: Sequence[Chunk]) -> list[ChunkResult]:
        """Publish the chunks; a result for each, in order."""
        ...

    def dead(self, limit: int) -> list[Chunk | None]:
        """Take at most `limit` messages that the broker set aside; None stands for an unreadable one."""
        ...

    def close(self) -> None: ...


def connect(settings: RelaySettings) -> Publisher:
    """Connect and declare the queues. Raises OSError or a kombu error when the broker cannot be reached."""
    redis = settings.broker_url.startswith(("redis", "rediss"))
    options = REDIS_TRANSPORT if redis else AMQP_TRANSPORT
    connection = Connection(
        settings.broker_url, transport_options=options, connect_timeout=_CONNECT_S, heartbeat=0
    )
    topology = Topology(settings.queue_prefix)
    try:
        connection.connect()
        channel = connection.channel()
        topology.deliver.bind(channel).declare()
        topology.dead.bind(channel).declare()
        return (
            RedisPublisher(connection, channel, topology)
            if redis
            else AmqpPublisher(connection, channel, topology)
        )
    except BaseException:
        connection.release()
        raise
