"""A broker of the Redis protocol that falls silent, is started again, loses its workers, or holds one up."""

from collections.abc import Generator
from pathlib import Path

import pytest

from oncebox_operate.embedded import EmbeddedValkey
from tests.integration.worker import parties
from tests.integration.worker.parties import Sender, through
from tests.notes.running import RunningService
from tests.support.faultproxy import FaultProxy
from tests.support.polling import eventually
from tests.support.processes import Processes
from tests.support.tcpproxy import TcpProxy

OPERATIONS = 400


@pytest.fixture
def valkey(tmp_path: Path) -> Generator[EmbeddedValkey]:
    with EmbeddedValkey(tmp_path / "valkey") as server:
        yield server


@pytest.fixture
def sender(sender_database: str, valkey: EmbeddedValkey, queue_prefix: str) -> Generator[Sender]:
    """A sender whose broker is that Valkey."""
    with parties.sender(sender_database, valkey.url(), queue_prefix) as made:
        yield made


def test_workers_that_come_and_go_lose_nothing_that_they_had_taken(
    sender: Sender, service: RunningService, token: str, processes: Processes
) -> None:
    """C6, C7: what a worker has popped and not finished is nowhere for a while, or for ever; killed and drained by turns
    under load, every operation is saved once all the same, because its row is due again."""
    environment = sender.environment(
        service.url, token, ONCEBOX_CHUNK="5", ONCEBOX_CONCURRENCY="2", ONCEBOX_RETRY_BASE_S="0.1"
    )
    with sender.running_relay(chunk=5, redispatch_s=1):
        workers = [parties.start_worker(processes, environment, ready=False) for _ in range(5)]
        for worker in workers:
            worker.wait_for_log("worker_started", timeout=60)
        left = OPERATIONS
        for number, worker in enumerate(workers[:4]):
            begin = number * 100
            sender.enqueue_named(*(f"note-{n}" for n in range(begin, begin + 100)))
            eventually(lambda enough=begin + 20: service.notes() >= enough, timeout=60, interval=0.005)
            if number % 2:
                assert worker.terminate(timeout=30) == 0
            else:
                worker.kill()
                lapse_leases_of(sender, worker.pid)
        eventually(
            lambda: sender.scalar("select count(*) from oncebox.outbox_entry") == 0,
            timeout=60,
            interval=0.1,
            what=f"all {left} are settled",
        )
        assert workers[4].terminate(timeout=30) == 0
    assert sender.scalar("select count(*) from oncebox.operation where final = 'saved'") == OPERATIONS
    assert (service.notes(), sender.scalar("select count(*) from oncebox.violation")) == (OPERATIONS, 0)


def test_a_worker_outlives_a_valkey_that_falls_silent_and_one_that_is_started_again(
    sender: Sender,
    valkey: EmbeddedValkey,
    service: RunningService,
    token: str,
    processes: Processes,
) -> None:
    """C13, C15, C52: no answer and no reset for a while, then a restart: the worker's process is the same, and it goes on."""
    with TcpProxy(sender.broker_url) as network:
        environment = sender.environment(service.url, token)
        environment["ONCEBOX_BROKER_URL"] = through(network, sender.broker_url)
        worker = parties.start_celery(processes, environment, "-P", "threads")
        with sender.running_relay(redispatch_s=2):
            sender.enqueue_named("first")
            sender.wait_until("saved", "first")
            network.blackhole()
            sender.enqueue_named("silent")
            eventually(lambda: sender.stamped(), what="the relay hands it over")
            network.pass_through()
            sender.wait_until("saved", "silent", timeout=60)
            network.cut()
            valkey.restart()
            sender.enqueue_named("restarted")
            sender.wait_until("saved", "restarted", timeout=60)
        assert worker.terminate(timeout=30) == 0
    assert service.notes() == 3


def test_what_lies_behind_a_long_call_is_delivered_by_others(
    sender: Sender, service: RunningService, receiver: FaultProxy, token: str, processes: Processes
) -> None:
    """C44: on Valkey a worker of one place takes one message more than it has places: what it holds back is handed over
    again after `redispatch_s`, and the short ones do not wait for the long one."""
    environment = sender.environment(
        receiver.url, token, ONCEBOX_CALL_TIMEOUT_S="25", ONCEBOX_CONCURRENCY="1"
    )
    workers = [parties.start_worker(processes, environment, ready=False) for _ in range(2)]
    for worker in workers:
        worker.wait_for_log("worker_started", timeout=60)
    held = receiver.hold_replies(1, match="POST *")
    sender.enqueue_named("long")
    with sender.running_relay(chunk=1, redispatch_s=1, idle_poll_s=0.2):
        held.wait_until_full(30)
        short = [f"short-{number}" for number in range(10)]
        sender.enqueue_named(*short)
        sender.wait_until("saved", *short, timeout=20)
        assert str(sender.status("long").state) == "sending"
        held.release()
        sender.wait_until("saved", "long")
    assert sender.calls().count("send") == 11
    assert service.notes() == 11
    for worker in workers:
        assert worker.terminate(timeout=30) == 0


def lapse_leases_of(sender: Sender, pid: int) -> None:
    """Turn the clock past the leases of a worker that is dead."""
    sender.change(
        "update oncebox.outbox_entry e set lease_until = now() - interval '1 s' from oncebox.call c"
        " where c.call_id = e.call_id and split_part(c.worker, ':', 2)::int = :pid",
        pid=pid,
    )
