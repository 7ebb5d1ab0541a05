"""Many at once: a replay of everything, relays and publishers in threads, brokers with more than one address."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from uuid import uuid4

from oncebox_outbox import prompting
from oncebox_worker import publishing
from oncebox_worker.messages import Chunk
from oncebox_worker.relay import BrokerUnreachable, Pass
from oncebox_worker.task_messages import chunk_of
from tests.integration.worker.parties import Sender, through
from tests.support.tcpproxy import TcpProxy

OPERATIONS = 300
THREADS = 8


def test_a_replay_of_everything_goes_through_the_same_gate(seen: Sender) -> None:
    """F59: asked about at once, hundreds only become due: what is at the broker stays within the relay's limits, pass by
    pass, and every one of them comes to its turn."""
    seen.enqueue_named(*(f"note-{number}" for number in range(OPERATIONS)))
    seen.change(
        "update oncebox.outbox_entry set attempts = 1, unanswered = 1, retries = 1, next_call = 'status',"
        " ready_at = now() + interval '1 h'"
    )
    with seen.relay(chunk=10, pass_limit=50, queue_limit=5) as relay:
        assert relay.run_once() == Pass()
        with seen.agent.begin() as connection:
            assert prompting.reconcile(connection).asked == OPERATIONS
        asked, most = 0, 0
        while asked < OPERATIONS:
            relay.run_once()
            relay.run_once()
            waiting = seen.taken_ids()
            most = max(most, len(waiting))
            asked += sum(len(chunk) for chunk in waiting)
            assert waiting
    assert (asked, most) == (OPERATIONS, 5)


def test_publishers_in_threads_do_not_meet(sender: Sender) -> None:
    """C33: each has a connection of its own, so no frame of one gets into another's: all confirmed, all whole."""
    chunks = [
        [
            Chunk(destination="notes", ids=(uuid4(), uuid4()), dispatched_at=datetime.now(UTC))
            for _ in range(40)
        ]
        for _ in range(THREADS)
    ]
    start = threading.Barrier(THREADS)

    def publish(mine: list[Chunk]) -> list[bool]:
        publisher = publishing.connect(sender.relay_settings())
        try:
            start.wait(20)
            return [
                result.accepted
                for begin in range(0, len(mine), 4)
                for result in publisher.publish(mine[begin : begin + 4])
            ]
        finally:
            publisher.close()

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(all(accepted) for accepted in pool.map(publish, chunks))
    taken = [chunk_of(message.body) for message in sender.take()]
    sent = [chunk for mine in chunks for chunk in mine]
    assert sorted(chunk.ids for chunk in taken if chunk) == sorted(chunk.ids for chunk in sent)


def test_a_broker_of_two_addresses_is_used_at_the_one_that_answers(seen: Sender) -> None:
    """C34: when the first is gone the next pass goes on at the second, and back again; never to what is dead."""
    with TcpProxy(seen.broker_url) as first, TcpProxy(seen.broker_url) as second:
        url = f"{through(first, seen.broker_url)};{through(second, seen.broker_url)}"
        with seen.relay(broker_url=url) as relay:
            for number, (dead, alive) in enumerate([(second, first), (first, second), (second, first)]):
                dead.refuse()
                alive.pass_through()
                (id,) = seen.enqueue_named(f"note-{number}")
                passes: list[Pass | None] = []
                for _ in range(2):
                    try:
                        passes.append(relay.run_once())
                    except BrokerUnreachable:
                        passes.append(None)
                assert Pass(published=1) in passes
                assert seen.taken_ids() == [[id]]
    assert seen.attempts() == 0
