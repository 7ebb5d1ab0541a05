"""The publisher against a real RabbitMQ: a chunk counts as taken only when the broker acknowledged it."""

import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from amqp.exceptions import NotFound, PreconditionFailed

from oncebox_worker import amqp_publisher, publishing, topology
from oncebox_worker.messages import Chunk, ChunkResult
from oncebox_worker.publishing import Publisher
from oncebox_worker.task_messages import chunk_of
from oncebox_worker.topology import Topology
from tests.integration.worker.parties import Sender, through
from tests.support.polling import eventually
from tests.support.tcpproxy import TcpProxy


def chunk(*ids: UUID) -> Chunk:
    return Chunk(destination="notes", ids=ids or (uuid4(),), dispatched_at=datetime.now(UTC))


@contextmanager
def connected(sender: Sender, broker_url: str | None = None) -> Generator[Publisher]:
    publisher = publishing.connect(sender.relay_settings(broker_url=broker_url or sender.broker_url))
    try:
        yield publisher
    finally:
        publisher.close()


def accepted(results: Iterable[ChunkResult]) -> list[bool]:
    return [result.accepted for result in results]


def test_what_the_broker_acknowledged_is_in_its_queue(sender: Sender) -> None:
    """A result for each chunk, in order, and each accepted chunk is one persistent message with these ids."""
    chunks = [chunk() for _ in range(250)]
    with connected(sender) as publisher:
        results = publisher.publish(chunks)
        assert [result.chunk for result in results] == chunks
        assert all(accepted(results))
    taken = sender.take()
    assert [chunk_of(message.body) for message in taken] == chunks
    assert {message.properties["delivery_mode"] for message in taken} == {2}


def test_waiting_counts_the_messages_that_no_worker_holds(sender: Sender) -> None:
    """The relay learns how many hints lie about already."""
    with connected(sender) as publisher:
        assert publisher.waiting() == 0
        publisher.publish([chunk(), chunk()])
        assert publisher.waiting() == 2


def test_a_message_that_no_queue_takes_is_not_accepted(sender: Sender) -> None:
    """C32: without a binding the mandatory flag brings the message back, and the chunk counts as not taken."""
    with connected(sender) as publisher, sender.broker() as channel:
        channel.queue_delete(f"{sender.prefix}.deliver")
        results = publisher.publish([chunk()])
        assert accepted(results) == [False]
        assert "not routed" in results[0].reason


def test_publishing_to_an_exchange_that_is_gone_raises(sender: Sender) -> None:
    """Nothing is reported as taken when the broker closes the channel (surprise 6: unconfirmed publishes lie)."""
    with connected(sender) as publisher, sender.broker() as channel:
        channel.exchange_delete(f"{sender.prefix}.deliver")
        with pytest.raises(NotFound):
            publisher.publish([chunk() for _ in range(20)])


def test_a_full_queue_refuses_and_the_chunk_is_not_accepted(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A nack means not taken; an older message is never dropped for a newer one."""
    monkeypatch.setattr(topology, "_HARD_QUEUE_LIMIT", 1)
    with connected(sender) as publisher:
        # The limit of a quorum queue is soft: it answers the messages that are on their way together.
        first = publisher.publish([chunk()])
        assert accepted(first) == [True]
        results = [publisher.publish([chunk()])[0] for _ in range(5)]
        assert not results[-1].accepted
        assert "full" in results[-1].reason
        taken = [chunk_of(message.body) for message in sender.take()]
        assert taken == [result.chunk for result in [*first, *results] if result.accepted]


def test_confirms_that_never_come_count_as_not_taken(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """F4: the broker has the message but its acknowledgement is on the way: the wait ends, the chunk is not taken."""
    monkeypatch.setattr(amqp_publisher, "_CONFIRM_S", 0.5)
    with (
        TcpProxy(sender.broker_url) as proxy,
        connected(sender, through(proxy, sender.broker_url)) as publisher,
    ):
        proxy.keep_replies()
        started = time.monotonic()
        results = publisher.publish([chunk()])
        assert time.monotonic() - started < 3
        assert accepted(results) == [False]
        assert "confirm" in results[0].reason
        proxy.pass_through()
    assert sender.messages() == 1


def test_a_late_confirm_does_not_count_for_a_later_message(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A confirm belongs to its own tag, also on a connection that went on after a timeout."""
    monkeypatch.setattr(amqp_publisher, "_CONFIRM_S", 0.3)
    with (
        TcpProxy(sender.broker_url) as proxy,
        connected(sender, through(proxy, sender.broker_url)) as publisher,
    ):
        proxy.keep_replies()
        assert accepted(publisher.publish([chunk()])) == [False]
        proxy.pass_through()
        with sender.broker() as channel:
            channel.queue_delete(f"{sender.prefix}.deliver")
        monkeypatch.setattr(amqp_publisher, "_CONFIRM_S", 5.0)
        assert accepted(publisher.publish([chunk()])) == [False]


def test_the_queues_are_quorum_queues_with_a_bound_on_everything(sender: Sender) -> None:
    """What is declared on the real broker: declaring it again with any other value is refused by it."""
    with connected(sender):
        declared = Topology(sender.prefix).deliver
        expected = {
            "x-queue-type": "quorum",
            "x-delivery-limit": 5,
            "x-dead-letter-exchange": f"{sender.prefix}.dead",
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
            "x-max-length": 20_000,
        }
        assert declared.queue_arguments == expected
        sender.declare()
        for name in expected:
            other = {
                **expected,
                name: {"reject-publish": "drop-head", 5: 6, 20_000: 1}.get(expected[name], "classic"),
            }
            with sender.broker() as channel, pytest.raises(PreconditionFailed):
                channel.queue_declare(declared.name, durable=True, auto_delete=False, arguments=other)


def test_dead_messages_are_taken_up_to_the_limit_and_once(sender: Sender) -> None:
    """A dead message comes back as its chunk, an unreadable one as None, and none comes twice."""
    with connected(sender) as publisher:
        chunks = [chunk(), chunk()]
        publisher.publish(chunks)
        with sender.broker() as channel:
            for body in (b"\xff\x00 no JSON", b"[]", b'[[{"v": 2, "ids": []}], {}, {}]'):
                channel.basic_publish(
                    channel.prepare_message(body), exchange=f"{sender.prefix}.deliver", routing_key="deliver"
                )
            while message := channel.basic_get(f"{sender.prefix}.deliver"):
                channel.basic_reject(message.delivery_tag, requeue=False)
        eventually(lambda: sender.messages("dead") == 5, what="all are set aside")
        assert publisher.dead(2) == chunks
        assert publisher.dead(10) == [None, None, None]
        assert publisher.dead(10) == []
