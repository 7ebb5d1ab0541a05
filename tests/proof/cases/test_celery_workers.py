"""Workers started by Celery's own command, where its past faults would show: heartbeats, prefetch, speed, memory."""

import os
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from oncebox_models.states import State
from oncebox_worker import publishing
from oncebox_worker.messages import Chunk
from tests.integration.worker import parties
from tests.integration.worker.parties import Sender, through
from tests.notes.running import RunningService
from tests.proof.cases.conftest import StartOdd
from tests.support.faultproxy import FaultProxy
from tests.support.polling import eventually
from tests.support.processes import Processes
from tests.support.rabbitmq import RabbitMQ
from tests.support.tcpproxy import TcpProxy

HEARTBEAT_S = 2
MESSAGES = 100
OLD_HINTS = 2_000


def test_a_call_of_many_heartbeats_during_a_drain_keeps_its_connection(
    sender: Sender, service: RunningService, receiver: FaultProxy, token: str, start_odd: StartOdd
) -> None:
    """C3, C4: SIGTERM at the start of a call that takes four heartbeats, in both pools: the worker goes on telling the broker
    that it lives, so that its message is neither taken away nor delivered to another; it ends with its work done."""
    with TcpProxy(sender.broker_url) as network:
        environment = sender.environment(receiver.url, token, ONCEBOX_CALL_TIMEOUT_S="25")
        environment["ONCEBOX_BROKER_URL"] = through(network, sender.broker_url)
        threads, prefork = (
            start_odd("short_heartbeats", environment, "-P", kind, "-c", "1", ready=False)
            for kind in ("threads", "prefork")
        )
        for worker in (threads, prefork):
            worker.wait_for_log("worker_started", timeout=60)
        held = receiver.hold_replies(2, match="POST *")
        sender.enqueue_named("one", "two")
        with sender.relay(chunk=1) as relay:
            assert relay.run_once().published == 2
        held.wait_until_full(30)
        connections = network.connections
        for worker in (threads, prefork):
            worker.send_signal(signal.SIGTERM)
            worker.wait_for_log('"worker_draining"', timeout=30)
        began = time.monotonic()
        while time.monotonic() - began < 4 * HEARTBEAT_S:
            assert sender.messages() == 0, "the broker took a message back"
            assert (threads.returncode(), prefork.returncode()) == (None, None)
            time.sleep(0.5)
        assert network.connections == connections
        held.release()
        assert (threads.wait(30), prefork.wait(30)) == (0, 0)
    sender.wait_until("saved", "one", "two")
    assert sender.calls() == ["send", "send"]
    assert (sender.messages(), service.notes()) == (0, 2)


def test_a_channel_that_the_broker_closed_comes_back_whole(
    sender: Sender, service: RunningService, receiver: FaultProxy, token: str, start_odd: StartOdd
) -> None:
    """C17, C23: the worker acknowledges what does not exist, and its channel is closed for it (406), while both its places
    are taken. The process lives, and afterwards both places are used again."""
    worker = start_odd(
        "acknowledges_nonsense", sender.environment(receiver.url, token), "-P", "threads", "-c", "2"
    )
    for turn in range(2):
        held = receiver.hold_replies(2, match="POST *")
        names = [f"note-{turn}-{place}" for place in range(2)]
        sender.enqueue_named(*names)
        with sender.relay(chunk=1) as relay:
            assert relay.run_once().published == 2
        held.wait_until_full(30)
        worker.send_signal(signal.SIGUSR1)
        worker.wait_for_log("unknown delivery tag", count=turn + 1, timeout=30)
        held.release()
        sender.wait_until("saved", *names)
        eventually(lambda: sender.messages() == 0, timeout=20, what="the worker takes messages again")
    assert sender.calls() == ["send"] * 4
    assert service.notes() == 4
    assert worker.terminate() == 0


def test_a_worker_makes_no_queue_but_ours(
    rabbitmq: RabbitMQ,
    sender_database: str,
    service: RunningService,
    token: str,
    processes: Processes,
    queue_prefix: str,
) -> None:
    """C18, C25, C45: no queue for its remote control, for events of others, for replies or for delays: none of a kind that a
    later broker refuses, and none that anybody has to read."""
    if reason := rabbitmq.unreachable():
        pytest.skip(reason)
    url = rabbitmq.fresh_url()
    vhost = urlsplit(url).path.removeprefix("/")
    if not vhost.startswith("oncebox-test-"):
        pytest.skip("no virtual host of our own here")
    with parties.sender(sender_database, url, queue_prefix) as made:
        worker = parties.start_celery(
            processes, made.environment(service.url, token), "-P", "threads", "-c", "2"
        )
        with made.relay() as relay:
            relay.run_once()
        told = subprocess.run(
            ["rabbitmqctl", "-q", "--no-table-headers", "list_queues", "-p", vhost, "name", "type"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    assert sorted(told.split("\n")[:-1]) == [
        f"{queue_prefix}.dead\tquorum",
        f"{queue_prefix}.deliver\tquorum",
    ]
    assert worker.terminate() == 0


def test_one_thread_does_more_than_one_message_a_second(
    sender: Sender, service: RunningService, token: str, processes: Processes
) -> None:
    """C35, C36: acknowledgements of a thread leave at once, not at the next turn of some loop; and C42: hints about what is
    settled long ago, thousands of them, cost no memory that stays."""
    worker = parties.start_celery(
        processes, sender.environment(service.url, token), "-P", "threads", "-c", "1"
    )
    ids = sender.enqueue_named(*(f"note-{number}" for number in range(MESSAGES)))
    began = time.monotonic()
    with sender.relay(chunk=1) as relay:
        assert relay.run_once().published == MESSAGES
    sender.wait_until("saved", *(f"note-{number}" for number in range(MESSAGES)), timeout=MESSAGES / 3)
    assert time.monotonic() - began < MESSAGES / 3
    publisher = publishing.connect(sender.relay_settings())
    stamp = sender.scalar("select now()")
    sizes: list[int] = []
    for _ in range(4):
        chunks = [
            Chunk(destination="notes", ids=(ids[0],), dispatched_at=stamp) for _ in range(OLD_HINTS // 4)
        ]
        assert all(result.accepted for result in publisher.publish(chunks))
        eventually(lambda: sender.messages() == 0, timeout=60, interval=0.1, what="all hints were looked at")
        sizes.append(resident_kib(worker.pid))
    publisher.close()
    assert sizes[-1] - sizes[1] < OLD_HINTS // 2, f"KiB: {sizes}; more than 1 KiB a message"
    assert (sender.calls(), service.notes()) == (["send"] * MESSAGES, MESSAGES)
    assert sender.status("note-0").state is State.SAVED
    assert worker.terminate() == 0


def resident_kib(pid: int) -> int:
    """The memory of a process, in KiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024
