"""A broker that was given to us: whether it answers, and queues that nobody else uses there."""

from typing import Final

from amqp.exceptions import AMQPError
from kombu import Connection
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from oncebox_operate import failures
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.failures import Failure
from oncebox_worker.topology import Topology

SCHEMES: Final = ("amqp", "amqps", "redis", "rediss")
_CONNECT_S: Final = 5
_ERRORS: Final = (OSError, KombuError, AMQPError, RedisError)


def checked_url(url: str) -> str:
    """Raises a usage failure for what is no broker's URL."""
    scheme = url.partition("://")[0]
    if scheme not in SCHEMES:
        raise failures.usage(
            f"The broker's URL begins with {scheme!r}; it must be one of {', '.join(SCHEMES)}.",
            "For example --broker amqp://guest:guest@127.0.0.1:5672, or none to have one started.",
        )
    return url


def check(url: str) -> None:
    """Raises Failure for a broker that does not answer."""
    try:
        with Connection(url, connect_timeout=_CONNECT_S) as connection:
            connection.ensure_connection(max_retries=1, timeout=_CONNECT_S)
    except _ERRORS as error:
        lines = str(error).splitlines()
        raise Failure(
            ExitCode.UNREACHABLE,
            "unreachable",
            f"Cannot reach the broker at {shown(url)}: {lines[0] if lines else type(error).__name__}.",
            "Check that it runs there and takes this user, or give no --broker to have one started.",
        ) from error


def delete_queues(url: str, prefix: str) -> None:
    """Remove what relays and workers declared under a prefix. One that does not answer keeps it."""
    topology = Topology(prefix)
    try:
        with Connection(url, connect_timeout=_CONNECT_S) as connection, connection.channel() as channel:
            for queue in (topology.deliver, topology.dead):
                bound = queue.bind(channel)
                bound.delete()
                bound.exchange.delete()
    except _ERRORS:
        return


def shown(url: str) -> str:
    """A broker's URL without user and password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
