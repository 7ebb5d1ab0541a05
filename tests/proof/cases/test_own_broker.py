"""A RabbitMQ node of these tests' own: what only its operator can do to a broker, or its machine."""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from oncebox_models.states import State
from oncebox_outbox import Enqueued, insights
from oncebox_worker.amqp_publisher import AmqpPublisher
from oncebox_worker.messages import Chunk, ChunkResult
from oncebox_worker.relay import BrokerUnreachable, Pass, Relay
from tests.integration.worker import parties
from tests.integration.worker.parties import OUTBOX, Sender, through, write
from tests.integration.worker.test_relay_outages import between_publish_and_confirm, quick
from tests.notes.running import RunningService
from tests.proof.chaos.parties.broker import Broker, BrokerMissing
from tests.proof.chaos.parties.spawning import Nursery
from tests.support.faultproxy import FaultProxy
from tests.support.polling import eventually
from tests.support.processes import Processes
from tests.support.tcpproxy import TcpProxy

__all__ = ["quick"]  # a fixture

PATIENCE_S = 3
PUT_OFF = sa.text(
    "update oncebox.outbox_entry set ready_at = now() + make_interval(secs => :by) where id = :id"
)
IMPATIENT = (f"consumer_timeout,{PATIENCE_S * 1000}", "channel_tick_interval,1000")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Generator[Broker]:
    """A node that waits 3 s for an acknowledgement and looks every second; Debian's waits 30 minutes."""
    folder = tmp_path_factory.mktemp("broker")
    with Nursery(folder) as nursery:
        try:
            made = Broker(nursery, folder / "node")
        except BrokerMissing as missing:
            pytest.skip(str(missing))
        made.start()
        for setting in IMPATIENT:
            made._call(f"application set_env [rabbit,{setting}]")
        yield made


@pytest.fixture
def sender(sender_database: str, broker: Broker, queue_prefix: str) -> Generator[Sender]:
    """A sender whose broker is that node."""
    url = f"amqp://guest:guest@{broker.address}//"
    with parties.sender(sender_database, url, queue_prefix) as made:
        yield made


def test_a_broker_that_waits_no_longer_for_an_acknowledgement(
    sender: Sender, service: RunningService, receiver: FaultProxy, token: str, processes: Processes
) -> None:
    """F14, C21, C22: it closes the channel (406) while a call is under way, and delivers the message again: the worker goes
    on living, the live lease keeps it to one call, and the answer is written down. What waits for its time is a row, and
    no message, so that the broker has nothing to be impatient about."""
    worker = parties.start_celery(
        processes, sender.environment(receiver.url, token, ONCEBOX_CALL_TIMEOUT_S="25"), "-P", "threads"
    )
    held = receiver.hold_replies(1, match="POST *")
    sender.enqueue_named("held")
    with sender.running_relay():
        held.wait_until_full()
        worker.wait_for_log("PRECONDITION_FAILED|delivery acknowledgement", timeout=20 * PATIENCE_S)
        eventually(lambda: sender.messages() == 0, timeout=20, what="it was delivered again")
        held.release()
        sender.wait_until("saved", "held")

        closed = worker.log_text().count("PRECONDITION_FAILED")
        # In one transaction: once it is committed as due, the relay hands it over at once.
        with Session(sender.agent) as session, session.begin():
            (later,) = OUTBOX.enqueue_many(session, [write("later")])
            assert isinstance(later, Enqueued)
            session.execute(PUT_OFF, {"by": PATIENCE_S + 2, "id": later.id})
        sender.wait_until("saved", "later", timeout=30)
        assert worker.log_text().count("PRECONDITION_FAILED") == closed
    assert sender.calls() == ["send", "send"]
    assert service.notes() == 2
    assert worker.terminate() == 0


@pytest.mark.usefixtures("quick")
def test_a_broker_whose_memory_alarm_rings(
    sender: Sender, broker: Broker, service: RunningService, token: str, processes: Processes
) -> None:
    """F47, C30: it blocks every publisher: the relay's waits end, stamps go back, the age rises, an enqueue is as quick as
    ever, a worker leaves when it is told to; when the alarm ends everything is delivered once."""
    worker = parties.start_worker(processes, sender.environment(service.url, token))
    with sender.running_relay(idle_poll_s=0.2) as alive:
        sender.enqueue_named("before")
        sender.wait_until("saved", "before")
        broker.alarm()
        try:
            slowest = 0.0
            for number in range(50):
                began = time.monotonic()
                sender.enqueue_named(f"note-{number}")
                slowest = max(slowest, time.monotonic() - began)
            assert slowest < 5
            first = oldest(sender)
            eventually(lambda: sender.stamped() == set(), timeout=20, what="stamps are taken back")
            assert worker.terminate(timeout=20) == 0
            assert oldest(sender) > first > 0
            assert (sender.attempts(), service.notes()) == (0, 1)
            alive()
        finally:
            broker.end_alarm()
        parties.start_worker(processes, sender.environment(service.url, token))
        sender.wait_until("saved", *(f"note-{number}" for number in range(50)), timeout=60)
    assert service.notes() == 51


@pytest.mark.usefixtures("quick")
def test_a_broker_killed_between_publish_and_confirm_and_before_an_acknowledgement(
    sender: Sender,
    broker: Broker,
    service: RunningService,
    receiver: FaultProxy,
    token: str,
    processes: Processes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """F4, F21, C24: kill -9 of the node when one message is written and its confirm on the way, and another's note is
    committed and its message not acknowledged. Started again it delivers what it kept: two sends, two notes."""
    worker = parties.start_celery(processes, sender.environment(receiver.url, token), "-P", "threads")
    with (
        TcpProxy(broker.address) as network,
        sender.relay(broker_url=through(network, sender.broker_url)) as relay,
    ):
        held = receiver.hold_replies(1, match="POST *")
        sender.enqueue_named("held")
        assert relay.run_once() == Pass(published=1)
        held.wait_until_full()
        sender.enqueue_named("doubt")
        with (
            before_publishing(monkeypatch, network.keep_replies),
            between_publish_and_confirm(monkeypatch, broker.kill),
            pytest.raises(BrokerUnreachable),
        ):
            relay.run_once()
        assert sender.stamped() == set()
        network.pass_through()
        held.release()
        sender.wait_until("saved", "held")
        worker.wait_for_log("Trying again|re-establish", timeout=30)
        broker.restart()
        eventually(lambda: went_on(relay), timeout=60, interval=0.5, what="the relay is back")
        sender.wait_until("saved", "doubt", timeout=60)
    assert sender.calls() == ["send", "send"]
    assert sender.status("held").state is State.SAVED
    assert service.notes() == 2
    assert worker.terminate() == 0


@contextmanager
def before_publishing(monkeypatch: pytest.MonkeyPatch, strike: Callable[[], None]) -> Generator[None]:
    """Run `strike` when the relay knows what to publish and has not written it yet."""
    original = AmqpPublisher.publish

    def struck(publisher: AmqpPublisher, chunks: Sequence[Chunk]) -> list[ChunkResult]:
        strike()
        return original(publisher, chunks)

    with monkeypatch.context() as patched:
        patched.setattr(AmqpPublisher, "publish", struck)
        yield


def went_on(relay: Relay) -> bool:
    """Whether the relay gets through to the broker by now."""
    try:
        relay.run_once()
    except BrokerUnreachable:
        return False
    return True


def oldest(sender: Sender) -> float:
    with sender.agent.connect() as connection:
        return insights.lag(connection).oldest_age_s
