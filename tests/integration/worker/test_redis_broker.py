"""The same path over a broker of the Redis protocol, which confirms nothing and keeps no dead letters."""

from collections.abc import Generator

import pytest
import redis

from oncebox_worker.relay import BrokerUnreachable, Pass
from tests.integration.worker import parties
from tests.integration.worker.parties import Sender, through
from tests.notes.running import RunningService
from tests.support.faultproxy import FaultProxy
from tests.support.processes import Processes
from tests.support.tcpproxy import TcpProxy


@pytest.fixture
def sender(sender_database: str, redis_url: str, queue_prefix: str) -> Generator[Sender]:
    """A sender whose broker speaks the Redis protocol; its queues are gone afterwards."""
    with parties.sender(sender_database, redis_url, queue_prefix) as made:
        made.see_receiver()
        yield made
        flush(made)


def test_a_relay_hands_over_and_knows_how_much_waits(sender: Sender) -> None:
    """An empty queue does not exist in this protocol: it counts as none waiting, not as an error."""
    with sender.relay(chunk=1, queue_limit=2) as relay:
        assert relay.run_once() == Pass()
        ids = sender.enqueue_named("a", "b")
        assert relay.run_once() == Pass(published=2)
        sender.enqueue_named("c")
        assert relay.run_once() == Pass()
        assert sender.taken_ids() == [[id] for id in ids]
        assert relay.run_once() == Pass(published=1)


def test_a_broker_that_is_away_costs_nothing(sender: Sender) -> None:
    """Whatever the broker did with it: an entry whose publishing failed loses its stamp."""
    with (
        TcpProxy(sender.broker_url) as proxy,
        sender.relay(broker_url=through(proxy, sender.broker_url)) as relay,
    ):
        assert relay.run_once() == Pass()
        proxy.refuse()
        sender.enqueue_named("a")
        with pytest.raises(BrokerUnreachable):
            relay.run_once()
        assert sender.stamped() == set()
        proxy.pass_through()
        assert relay.run_once() == Pass(published=1)
    assert sender.attempts() == 0


def test_a_broker_that_forgot_everything_costs_only_time(
    sender: Sender, service: RunningService, token: str, processes: Processes
) -> None:
    """C9, C10, invariant 11: what a killed worker held, the queue and its bindings are gone; relay and worker go on.

    One note each, and an orderly end.
    """
    sender.change("update oncebox.destination set receiver = null")
    with FaultProxy(service.url) as receiver, sender.running_relay(redispatch_s=1):
        environment = sender.environment(receiver.url, token)
        worker = parties.start_worker(processes, environment)
        other = parties.start_worker(processes, environment)
        held = receiver.hold_replies(1, match="POST *")
        sender.enqueue_named("held")
        held.wait_until_full()
        busy = int(sender.scalar("select split_part(worker, ':', 2)::int from oncebox.call"))
        (killed,) = [process for process in (worker, other) if process.pid == busy]
        killed.kill()
        flush(sender)
        sender.change("update oncebox.outbox_entry set lease_until = now() - interval '1 s'")
        sender.wait_until("saved", "held")
        sender.enqueue_named("next")
        sender.wait_until("saved", "next")
        (left,) = {worker, other} - {killed}
        assert left.terminate(timeout=15) == 0
    assert sender.calls() == ["send", "status", "send"]
    assert service.notes() == 2
    assert sender.leased() == 0


def flush(sender: Sender) -> None:
    """The broker forgets what is ours."""
    with redis.Redis.from_url(sender.broker_url) as client:
        for key in client.scan_iter(f"*{sender.prefix}*"):
            client.delete(key)
