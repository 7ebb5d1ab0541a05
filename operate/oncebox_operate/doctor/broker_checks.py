"""The broker: does it answer, and are the queues there. Only looks: a doctor declares nothing."""

import socket
from typing import Any, Final
from urllib.parse import urlsplit

from oncebox_operate.doctor.checks import Check, fail, ok, unreachable, warn

_CONNECT_S: Final = 3.0
_QUICK_S: Final = 0.4
_RELAY: Final = "oncebox relay"
_FIX: Final = "export ONCEBOX_BROKER_URL=amqp://USER:PASSWORD@HOST:5672//"


def of_broker(url: str, queue_prefix: str) -> list[Check]:
    """Connect as a relay does, and look for its queues."""
    if not url.startswith(("amqp://", "amqps://", "redis://", "rediss://")):
        return [_not_a_url()]
    # Imported here: only a doctor who looks at a broker waits for its libraries.
    from amqp.exceptions import AccessRefused, NotFound
    from kombu import Connection

    from oncebox_worker.celery_config import AMQP_TRANSPORT, REDIS_TRANSPORT

    redis = url.startswith("redis")
    transport = REDIS_TRANSPORT if redis else AMQP_TRANSPORT
    try:
        with Connection(
            url, transport_options=transport, connect_timeout=_CONNECT_S, heartbeat=0
        ) as connection:
            connection.connect()
            where = f"{'Redis protocol' if redis else 'AMQP'} at {_place(url)}"
            if redis:
                # Such a broker makes a queue when a message comes, and tells nobody who listens.
                return [ok("broker", where)]
            channel: Any = connection.channel()  # py-amqp carries no types
            try:
                found = channel.queue_declare(f"{queue_prefix}.deliver", passive=True)
            except NotFound:
                return [ok("broker", where), _no_queue(queue_prefix)]
            return [ok("broker", where), _queue(queue_prefix, found.message_count, found.consumer_count)]
    except AccessRefused:
        return [fail("broker", f"{_place(url)} does not accept the user or the password", _FIX)]
    except Exception as error:
        # A closed set cannot be named: sockets, TLS, kombu and two client libraries raise their own.
        return [_no_answer(url, error)]


def of_port(url: str) -> Check:
    """Whether somebody listens at the broker's address: what a health check has time for."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"amqp": 5672, "amqps": 5671, "redis": 6379, "rediss": 6379}[parts.scheme]
    except (ValueError, KeyError):
        return _not_a_url()
    try:
        with socket.create_connection((parts.hostname or "127.0.0.1", port), timeout=_QUICK_S):
            return ok("broker", f"{_place(url)} accepts connections")
    except OSError as error:
        return _no_answer(url, error)


def _queue(prefix: str, waiting: int, consumers: int) -> Check:
    says = f"{prefix}.deliver: messages waiting: {waiting:,}"
    if consumers:
        return ok("queue", f"{says}, consumers: {consumers}")
    return warn("queue", f"{says}, and no worker takes them", "oncebox worker")


def _no_queue(prefix: str) -> Check:
    return warn("queue", f"{prefix}.deliver is not there yet; a relay makes it", _RELAY)


def _not_a_url() -> Check:
    return fail("broker", "ONCEBOX_BROKER_URL is not a URL of amqp, amqps, redis or rediss", _FIX)


def _no_answer(url: str, error: Exception) -> Check:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return unreachable(
        "broker", f"{_place(url)} does not answer ({lines[0]}). Start it, or name another", _FIX
    )


def _place(url: str) -> str:
    """Host and port: a broker's URL holds a password."""
    return urlsplit(url).netloc.rpartition("@")[2] or url.partition(":")[0]
