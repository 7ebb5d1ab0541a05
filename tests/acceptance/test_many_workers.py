"""Several workers share the work; those that are killed in the middle of a call lose nothing and repeat nothing."""

from collections.abc import Callable, Sequence

from tests.acceptance.town import Town
from tests.support.polling import eventually
from tests.support.processes import RunningProcess

OPERATIONS = 2_000


def test_4_workers_share_2000_operations_and_3_of_them_are_killed(
    build_town: Callable[..., Town], broker_url: str
) -> None:
    """F10, F15, F28: each of the four sends at least 5 %; three die by kill -9 with a call that the receiver has
    executed and they have not settled; notes = operations, and nothing is left unknown."""
    town = build_town(broker_url, chunk=10, concurrency=2)
    workers = town.open(workers=4)
    ids = [f"op-{number}" for number in range(OPERATIONS)]
    share = OPERATIONS * 5 // 100
    town.save_many(ids[:1_200])
    eventually(
        lambda: [sent for sent in town.sender.sent_by_worker().values() if sent >= share][3:],
        timeout=60,
        what=lambda: f"each worker has sent {share}: {town.sender.sent_by_worker()}",
    )

    town.save_many(ids[1_200:])
    killed = kill_in_the_middle_of_a_call(town, workers, 3)
    assert town.sender.lapse_leases_of(killed) > 0
    town.drain()

    assert town.sender.states() == {"saved": OPERATIONS}
    assert town.notes.count() == OPERATIONS
    assert town.notes.value("SELECT count(DISTINCT operation_key) FROM note_version") == OPERATIONS
    assert min(town.sender.sent_by_worker().values()) >= share
    assert len(town.sender.sent_by_worker()) == 4
    assert town.sender.attempts() >= town.log.operations_sent() >= OPERATIONS
    assert town.sender.violations() == []


def test_the_same_path_on_a_broker_of_the_redis_protocol(
    build_town: Callable[..., Town], redis_url: str
) -> None:
    """200 operations, one of two workers killed in the middle of a call: what the broker then keeps to itself for
    minutes is published again from the outbox after `redispatch_s`."""
    town = build_town(redis_url, chunk=5, concurrency=2, redispatch_s=2.0)
    workers = town.open(workers=2)
    town.save_many([f"op-{number}" for number in range(200)])
    killed = kill_in_the_middle_of_a_call(town, workers, 1)
    town.sender.lapse_leases_of(killed)
    town.drain()

    assert town.sender.states() == {"saved": 200}
    assert town.notes.count() == 200
    assert town.sender.attempts() >= town.log.operations_sent() >= 200
    assert town.sender.violations() == []


def kill_in_the_middle_of_a_call(town: Town, workers: Sequence[RunningProcess], count: int) -> list[int]:
    """kill -9, one after another, for whoever waits for a reply that the receiver has sent: their process ids."""
    living = {worker.pid: worker for worker in workers}
    killed: list[int] = []
    while len(killed) < count:
        answered = town.proxy.hold_replies(1, match="POST /v1/notes:batch")
        answered.wait_until_full()
        waiting = [
            e for e in town.proxy.requests("POST /v1/notes:batch") if e.status == 200 and not e.replied
        ]
        pids = {town.sender.worker_of(exchange.headers["call-id"]) for exchange in waiting}
        # Those that waited when they were killed wait for ever.
        pid = next(pid for pid in pids if pid in living)
        living.pop(pid).kill()
        killed.append(pid)
        answered.release()
    return killed
