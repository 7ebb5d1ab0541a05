"""Brokers that a test may freeze: RabbitMQ behind a network that swallows everything, and a stopped Valkey."""

import os
import signal
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import redis

from oncebox_operate.embedded import EmbeddedValkey
from tests.support.tcpproxy import TcpProxy


@dataclass(frozen=True, slots=True)
class Broker:
    """``with broker.frozen(): ...``: inside it the broker takes connections and answers nothing.

    ``cut`` ends the connections that are open, and says how many.
    """

    url: str
    frozen: Callable[[], AbstractContextManager[None]]
    cut: Callable[[], int]


@contextmanager
def rabbitmq(url: str) -> Generator[Broker]:
    """The RabbitMQ at ``url`` belongs to others, too: its network is frozen, not the broker."""
    address = urlsplit(url)
    with TcpProxy(f"{address.hostname}:{address.port or 5672}") as network:
        credentials = f"{address.username}:{address.password}@" if address.username else ""
        through = address._replace(netloc=f"{credentials}{network.address}").geturl()

        @contextmanager
        def frozen() -> Generator[None]:
            network.blackhole()
            yield
            network.pass_through()

        def cut() -> int:
            connections = network.open_connections
            network.cut()
            return connections

        yield Broker(through, frozen, cut)


@contextmanager
def valkey(folder: Path) -> Generator[Broker]:
    """A Valkey of the test's own, stopped with SIGSTOP."""
    with EmbeddedValkey(folder) as server:
        with redis.Redis.from_url(server.url()) as client:
            pid = int(client.info("server")["process_id"])  # pyright: ignore[reportIndexIssue] the client is not async

        @contextmanager
        def frozen() -> Generator[None]:
            os.kill(pid, signal.SIGSTOP)
            try:
                yield
            finally:
                os.kill(pid, signal.SIGCONT)

        def cut() -> int:
            with redis.Redis.from_url(server.url()) as client:
                return int(str(client.client_kill_filter(skipme=True, _type="normal")))

        yield Broker(server.url(), frozen, cut)
