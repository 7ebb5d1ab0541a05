"""A sender with a database and queues of its own, and a note service to deliver to."""

from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from amqp.exceptions import AMQPError
from kombu import Connection

from tests.integration.worker import parties
from tests.integration.worker.parties import Sender
from tests.notes.running import RunningService, running
from tests.support.rabbitmq import RabbitMQ


@pytest.fixture(scope="session")
def rabbitmq_url(rabbitmq: RabbitMQ) -> str:
    """One virtual host for all tests here: making one takes seconds, and each test has queues of its own."""
    if reason := rabbitmq.unreachable():
        pytest.skip(reason)
    return rabbitmq.fresh_url()


@pytest.fixture
def queues(rabbitmq_url: str, queue_prefix: str) -> Generator[str]:
    """The prefix of this test's queues, which are gone afterwards."""
    yield queue_prefix
    with Connection(rabbitmq_url) as connection:
        channel: Any = connection.channel()
        for name in (f"{queue_prefix}.deliver", f"{queue_prefix}.dead"):
            with suppress(AMQPError):
                channel.queue_delete(name)
                channel.exchange_delete(name)


@pytest.fixture
def sender(sender_database: str, rabbitmq_url: str, queues: str) -> Generator[Sender]:
    """A sender whose receiver was never reached."""
    with parties.sender(sender_database, rabbitmq_url, queues) as made:
        yield made


@pytest.fixture
def seen(sender: Sender) -> Sender:
    """A sender whose receiver was reached once: its entries may be handed over."""
    sender.see_receiver()
    return sender


@pytest.fixture
def service(notes_database: str, tmp_path: Path) -> Generator[RunningService]:
    """A note service whose principal demo/researcher may write to drafts."""
    with running(notes_database, tmp_path, lock_timeout_seconds=1.0) as started:
        started.grant()
        yield started


@pytest.fixture
def token(service: RunningService) -> str:
    """A delegate's token, as workers have one."""
    return service.token("worker", tenants=["demo"])
