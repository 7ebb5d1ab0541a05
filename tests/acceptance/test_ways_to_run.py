"""The other ways to run a worker: processes instead of threads, and Celery's own command."""

import sys
from collections.abc import Sequence

import pytest

from tests.acceptance.town import ONCEBOX, WORKER_STARTED, Town
from tests.support.polling import eventually

OPERATIONS = 300
PLAIN_CELERY = [
    sys.executable,
    *("-m", "celery", "--quiet", "-A", "oncebox_worker.app", "worker", "-P", "threads", "-c", "2"),
]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param([*ONCEBOX, "worker", "--pool", "prefork", "--concurrency", "2"], id="prefork"),
        pytest.param(PLAIN_CELERY, id="celery"),
    ],
)
def test_a_worker_delivers_and_drains_whatever_its_pool(new_town: Town, command: Sequence[str]) -> None:
    """Stopped under load it leaves with 0 and holds nothing; with its successor each operation was sent once."""
    town = new_town
    town.open(workers=0)
    first = town.start_worker(command, chunk=5)
    first.wait_for_log(WORKER_STARTED, timeout=40)
    town.save_many([f"op-{number}" for number in range(OPERATIONS)])
    eventually(lambda: town.notes.count() >= 30, timeout=30, interval=0.005)
    assert first.terminate(timeout=20) == 0
    assert town.sender.leased() == 0

    town.start_worker(command, chunk=5).wait_for_log(WORKER_STARTED, timeout=40)
    town.drain()
    assert town.notes.count() == OPERATIONS
    assert town.sender.attempts() == town.log.operations_sent() == OPERATIONS
