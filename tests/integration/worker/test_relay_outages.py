"""The relay when the broker fails: waits are bounded, stamps are taken back, nothing is spent, nobody waits for it."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from uuid import UUID

import pytest

from oncebox_worker import amqp_publisher, topology
from oncebox_worker.amqp_publisher import AmqpPublisher
from oncebox_worker.relay import BrokerUnreachable, Pass
from tests.integration.worker.parties import Sender, through
from tests.support.polling import eventually
from tests.support.tcpproxy import TcpProxy


@pytest.fixture
def proxy(seen: Sender) -> Generator[TcpProxy]:
    """The network between relay and broker."""
    with TcpProxy(seen.broker_url) as made:
        yield made


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bounds, shorter: a test must not wait as long as an outage."""
    monkeypatch.setattr(amqp_publisher, "_CONFIRM_S", 0.5)
    for bound in ("read_timeout", "write_timeout", "connect_timeout"):
        monkeypatch.setitem(amqp_publisher.AMQP_TRANSPORT, bound, 0.5)


@contextmanager
def between_publish_and_confirm(
    monkeypatch: pytest.MonkeyPatch, strike: Callable[[], None]
) -> Generator[None]:
    """Run `strike` when everything is written and no confirm was read yet."""
    original = AmqpPublisher._await_confirms

    def struck(publisher: AmqpPublisher) -> None:
        strike()
        original(publisher)

    with monkeypatch.context() as patched:
        patched.setattr(AmqpPublisher, "_await_confirms", struck)
        yield


@pytest.mark.parametrize("strike", [TcpProxy.cut, TcpProxy.blackhole, TcpProxy.keep_replies])
@pytest.mark.usefixtures("quick")
def test_a_connection_that_fails_between_publish_and_confirm(
    seen: Sender, proxy: TcpProxy, monkeypatch: pytest.MonkeyPatch, strike: Callable[[TcpProxy], None]
) -> None:
    """F4: without a confirm the stamp is taken back at once, and the entry goes out again, whatever the broker got."""
    (id,) = seen.enqueue_named("note-7")
    with seen.relay(broker_url=through(proxy, seen.broker_url)) as made:
        with (
            between_publish_and_confirm(monkeypatch, lambda: strike(proxy)),
            pytest.raises(BrokerUnreachable),
        ):
            made.run_once()
        assert seen.stamped() == set()
        proxy.pass_through()
        assert made.run_once() == Pass(published=1)
    assert seen.stamped() == {id}
    chunks = seen.taken_ids()
    assert chunks in ([[id]], [[id], [id]])
    assert seen.attempts() == 0


@pytest.mark.usefixtures("quick")
def test_a_frozen_broker_bounds_every_wait_of_the_relay(
    seen: Sender, proxy: TcpProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """F17, F47, C29, C30: a broker that answers nothing costs the relay bounded waits, and an enqueue nothing."""
    with seen.running_relay(idle_poll_s=0.1, broker_url=through(proxy, seen.broker_url)) as alive:
        eventually(lambda: proxy.connections == 1, what="the relay is connected")
        seen.enqueue_named("before")
        eventually(lambda: len(seen.stamped()) == 1, what="it works")
        proxy.blackhole()
        started = time.monotonic()
        ids = {id for number in range(20) for id in seen.enqueue_named(f"note-{number}")}
        assert time.monotonic() - started < 3
        # New connections, each given up in turn: no wait is for ever.
        eventually(lambda: proxy.connections >= 4, timeout=20, what="the relay gave up and tried again")
        assert not seen.stamped() & ids
        alive()
        proxy.pass_through()
        eventually(lambda: ids <= seen.stamped(), timeout=20, what="all are handed over")
    assert seen.attempts() == 0
    assert "broker_unreachable" in {record.message for record in caplog.records}


def test_the_bounds_in_use_are_shorter_than_a_lease() -> None:
    """A pass over a frozen broker ends within half a minute, whatever it was doing."""
    bounds = amqp_publisher.AMQP_TRANSPORT
    assert set(bounds) == {"read_timeout", "write_timeout", "connect_timeout"}
    assert sum(bounds.values()) + amqp_publisher._CONFIRM_S < 30


def test_a_broker_that_is_down_at_the_start_is_waited_for(
    seen: Sender, proxy: TcpProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """C31: the relay starts, says so, backs off and spends nothing; when the broker is there it goes on."""
    proxy.refuse()
    (id,) = seen.enqueue_named("note-7")
    with seen.running_relay(idle_poll_s=0.1, broker_url=through(proxy, seen.broker_url)) as alive:
        eventually(lambda: len(outages(caplog)) >= 2, what="it tries again and again")
        assert seen.stamped() == set()
        alive()
        proxy.pass_through()
        eventually(lambda: seen.stamped() == {id}, timeout=15, what="the entry is handed over")
    assert seen.attempts() == 0
    assert len(outages(caplog)) < 30


def test_upkeep_goes_on_while_the_broker_is_down(seen: Sender, proxy: TcpProxy) -> None:
    """Invariant 13: what needs no broker is settled without one."""
    proxy.refuse()
    (id,) = seen.enqueue_named("note-7")
    for table in ("operation", "outbox_entry"):
        seen.change(f"update oncebox.{table} set deadline = now() - interval '1 s' where id = :id", id=id)
    with seen.relay(broker_url=through(proxy, seen.broker_url)) as made, pytest.raises(BrokerUnreachable):
        made.run_once()
    assert seen.status("note-7").reason == "expired"


def test_what_a_full_queue_refused_keeps_no_stamp(
    seen: Sender, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A nack takes the stamp back; what was taken stays handed over; with room again the rest follows."""
    monkeypatch.setattr(topology, "_HARD_QUEUE_LIMIT", 1)
    ids: list[UUID] = []
    with seen.relay(chunk=1) as made:
        # The limit is soft: a few may be taken beyond it.
        for number in range(50):
            ids += seen.enqueue_named(f"note-{number}-a", f"note-{number}-b")
            try:
                made.run_once()
            except BrokerUnreachable:
                break
        else:
            pytest.fail("the queue never was full")
        reasons = {record.fields["reason"] for record in caplog.records if record.message == "publish_failed"}  # pyright: ignore[reportAttributeAccessIssue]
        assert reasons == {"refused by the broker (is the queue full?)"}
        published = [id for chunk in seen.taken_ids() for id in chunk]
        assert set(published) == seen.stamped()
        assert len(published) < len(ids)
        for _ in range(60):
            try:
                if made.run_once() == Pass():
                    break
            except BrokerUnreachable:
                published += [id for chunk in seen.taken_ids() for id in chunk]
    published += [id for chunk in seen.taken_ids() for id in chunk]
    assert sorted(published) == sorted(ids)


def test_queues_that_were_deleted_are_made_again(seen: Sender) -> None:
    """An operator's mistake costs one pass: the relay declares the queues anew."""
    (id,) = seen.enqueue_named("note-7")
    with seen.relay() as made:
        assert made.run_once() == Pass(published=1)
        with seen.broker() as channel:
            channel.queue_delete(f"{seen.prefix}.deliver")
        seen.change("update oncebox.outbox_entry set dispatched_at = null")
        with pytest.raises(BrokerUnreachable):
            made.run_once()
        assert seen.stamped() == set()
        assert made.run_once() == Pass(published=1)
    assert seen.taken_ids() == [[id]]


def outages(caplog: pytest.LogCaptureFixture) -> list[object]:
    return [record for record in caplog.records if record.message == "broker_unreachable"]
