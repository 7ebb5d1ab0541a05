"""Stopping a worker: what it has begun is finished, what it has not is left for others, nothing is done twice."""

import signal
import time
from collections.abc import Callable

from tests.acceptance.town import Town
from tests.support.polling import eventually

OPERATIONS = 600
# A call may take its whole timeout, its settling a statement's: a worker under load needs far less.
BUDGET_S = 10.0


def test_sigterm_under_load_finishes_what_is_held_and_sends_nothing_twice(
    build_town: Callable[..., Town], broker_url: str
) -> None:
    """C1: the worker leaves with 0 within its budget and no lease is left; after its successor has finished the rest,
    every operation was sent exactly once."""
    town = build_town(broker_url, chunk=5, concurrency=4)
    (worker,) = town.open()
    town.save_many([f"op-{number}" for number in range(OPERATIONS)])
    eventually(lambda: town.notes.count() >= 50, timeout=30, interval=0.005)
    began = time.monotonic()
    assert worker.terminate(timeout=BUDGET_S) == 0
    assert time.monotonic() - began < BUDGET_S
    worker.wait_for_log('"worker_drained"', timeout=1)
    assert town.sender.leased() == 0
    left = town.sender.live()
    assert 0 < left < OPERATIONS, f"{left} left: not stopped under load"

    town.start_workers()
    town.drain()
    assert town.notes.count() == OPERATIONS
    assert town.sender.attempts() == town.log.operations_sent() == OPERATIONS


def test_a_second_sigterm_ends_a_draining_worker_at_once(new_town: Town) -> None:
    """It leaves the lease to lapse: what it had begun is not called anything but under way, then unknown."""
    town = new_town
    (worker,) = town.open(call_timeout_s=30.0, lease_s=60.0)
    held = town.proxy.hold(1, match="POST /v1/notes:batch", release_when_full=False)
    town.save("drain-7")
    held.wait_until_full()
    worker.send_signal(signal.SIGTERM)
    worker.wait_for_log("worker_draining")
    began = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=5) != 0
    assert time.monotonic() - began < 2
    assert town.status("drain-7").state == "sending"
    assert town.sender.lapse_leases() == 1
    assert town.status("drain-7").state == "unknown"
