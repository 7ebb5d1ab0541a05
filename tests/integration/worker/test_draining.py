"""Stopping: SIGTERM takes no more, finishes what is held, and leaves; a second one ends at once."""

import signal
from collections.abc import Generator

import pytest

from oncebox_models.states import State
from tests.integration.worker import parties
from tests.integration.worker.parties import Sender, events, log_lines, through
from tests.notes.running import RunningService
from tests.support.faultproxy import FaultProxy
from tests.support.polling import eventually
from tests.support.processes import Processes
from tests.support.tcpproxy import TcpProxy


@pytest.fixture
def receiver(service: RunningService) -> Generator[FaultProxy]:
    """The network between worker and note service."""
    with FaultProxy(service.url) as made:
        yield made


@pytest.fixture
def broker(rabbitmq_url: str) -> Generator[TcpProxy]:
    """The network between worker and broker."""
    with TcpProxy(rabbitmq_url) as made:
        yield made


@pytest.fixture
def distant(sender: Sender, broker: TcpProxy, receiver: FaultProxy, token: str) -> dict[str, str]:
    """The environment of a worker whose broker and receiver are behind networks."""
    environment = sender.environment(receiver.url, token)
    environment["ONCEBOX_BROKER_URL"] = through(broker, sender.broker_url)
    return environment


@pytest.mark.parametrize(("pool", "stop"), [("threads", signal.SIGTERM), ("prefork", signal.SIGINT)])
def test_sigterm_during_a_call_finishes_it_and_takes_no_more(
    sender: Sender,
    service: RunningService,
    receiver: FaultProxy,
    token: str,
    processes: Processes,
    pool: str,
    stop: signal.Signals,
) -> None:
    """C1: plain `celery -A oncebox_worker.app worker` in both pools: the call under way ends with its receipt; what
    comes later stays in the queue; nothing is leased, repeated or left unacknowledged when it has gone."""
    environment = sender.environment(receiver.url, token)
    worker = parties.start_celery(processes, environment, "-P", pool, "-c", "2")
    held = receiver.hold_replies(1, match="POST *")
    sender.enqueue_named("held")
    with sender.running_relay():
        held.wait_until_full()
        worker.send_signal(stop)
        worker.wait_for_log('"worker_draining"')
        sender.enqueue_named("later")
        eventually(lambda: sender.messages() == 1, what="what comes later waits in the queue")
        held.release()
        assert worker.wait(25) == 0
    assert sender.status("held").state is State.SAVED
    assert sender.status("later").state is State.PENDING
    assert sender.leased() == 0
    assert sender.messages() == 1
    assert len(receiver.requests("POST *")) == 1
    assert events(worker)[-1] == "worker_drained"


def test_a_second_sigterm_ends_the_worker_at_once(
    sender: Sender, receiver: FaultProxy, token: str, processes: Processes
) -> None:
    """Its lease is left to lapse, which then reads as unknown; the message goes back to the queue."""
    worker = parties.start_worker(processes, sender.environment(receiver.url, token))
    held = receiver.hold_replies(1, match="POST *")
    sender.enqueue_named("held")
    with sender.relay() as relay:
        relay.run_once()
    held.wait_until_full()
    worker.send_signal(signal.SIGTERM)
    worker.wait_for_log('"worker_draining"')
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(5) == 1
    assert log_lines(worker)[-1]["event"] == "worker_killed"
    assert sender.status("held").state is State.SENDING
    sender.change("update oncebox.outbox_entry set lease_until = now() - interval '1 s'")
    assert sender.status("held").state is State.UNKNOWN
    eventually(lambda: sender.messages() == 1, what="the broker has the message back")


def test_a_worker_killed_during_a_call_costs_time_and_nothing_else(
    sender: Sender, service: RunningService, receiver: FaultProxy, token: str, processes: Processes
) -> None:
    """F21, F28, F31: kill -9 after the note was written: the next worker asks, and sends nothing again."""
    environment = sender.environment(receiver.url, token)
    worker = parties.start_worker(processes, environment)
    held = receiver.hold_replies(1, match="POST *")
    sender.enqueue_named("held")
    with sender.running_relay(redispatch_s=1):
        held.wait_until_full()
        worker.kill()
        sender.change("update oncebox.outbox_entry set lease_until = now() - interval '1 s'")
        assert sender.status("held").state is State.UNKNOWN
        parties.start_celery(processes, environment, "-P", "threads")
        sender.wait_until("saved", "held")
    assert sender.calls() == ["send", "status"]
    assert service.notes() == 1


def test_a_lost_broker_connection_during_a_call(
    sender: Sender,
    service: RunningService,
    receiver: FaultProxy,
    broker: TcpProxy,
    distant: dict[str, str],
    processes: Processes,
) -> None:
    """C24: the message is delivered again while the call is under way: the live lease keeps it from being sent
    twice. Then the broker is gone for good, and SIGTERM still ends the worker."""
    worker = parties.start_worker(processes, distant)
    held = receiver.hold_replies(1, match="POST *")
    sender.enqueue_named("held")
    with sender.running_relay():
        held.wait_until_full()
        connections = broker.connections
        broker.cut()
        eventually(lambda: broker.connections > connections, what="the worker is back", timeout=20)
        eventually(lambda: sender.messages() == 0, what="it was delivered again")
        held.release()
        sender.wait_until("saved", "held")
        sender.enqueue_named("next")
        sender.wait_until("saved", "next")
    assert sender.calls() == ["send", "send"]
    assert service.notes() == 2
    broker.refuse()
    worker.wait_for_log("Trying again|re-establish", count=2)
    assert worker.terminate(timeout=15) == 0
    assert sender.leased() == 0


def test_sigterm_while_the_broker_is_frozen(
    sender: Sender, broker: TcpProxy, distant: dict[str, str], processes: Processes
) -> None:
    """F47: a broker that answers nothing keeps neither a worker nor a relay from leaving; a relay that sleeps is gone
    in no time."""
    sender.see_receiver()
    sender.change("update oncebox.destination set receiver = null")
    worker = parties.start_worker(processes, distant, ready=False)
    frozen = parties.start_relay(processes, distant, ready=False)
    idle = parties.start_relay(processes, sender.environment())
    worker.wait_for_log("worker_started", timeout=30)
    frozen.wait_for_log("relay_started")
    eventually(lambda: broker.open_connections >= 2, what="both are connected")
    broker.blackhole()
    for process in (worker, frozen, idle):
        process.send_signal(signal.SIGTERM)
    assert idle.wait(5) == 0
    assert frozen.wait(30) == 0
    assert worker.wait(30) == 0
    for relay in (idle, frozen):
        assert (events(relay)[0], events(relay)[-1]) == ("relay_started", "relay_stopped")


def test_sigterm_while_the_broker_was_never_there(
    broker: TcpProxy, distant: dict[str, str], processes: Processes
) -> None:
    """A worker that still waits for its first connection leaves, too."""
    broker.refuse()
    worker = parties.start_worker(processes, distant, ready=False)
    worker.wait_for_log("Cannot connect to amqp", timeout=30)
    assert worker.terminate(timeout=15) == 0
    assert "Traceback" not in worker.log_text()
