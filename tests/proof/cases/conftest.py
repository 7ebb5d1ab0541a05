"""Cases that need real processes and take seconds: a sender, a note service, workers that behave oddly on purpose."""

from collections.abc import Callable, Generator

import pytest

from tests.integration.worker.conftest import queues, rabbitmq_url, seen, sender, service, token
from tests.notes.running import RunningService
from tests.support.databases import ROOT
from tests.support.faultproxy import FaultProxy
from tests.support.processes import Processes, RunningProcess

__all__ = ["queues", "rabbitmq_url", "seen", "sender", "service", "token"]  # fixtures

StartOdd = Callable[..., RunningProcess]


@pytest.fixture
def receiver(service: RunningService) -> Generator[FaultProxy]:
    """The network between workers and note service."""
    with FaultProxy(service.url) as made:
        yield made


@pytest.fixture
def start_odd(processes: Processes) -> StartOdd:
    """Starts Celery's own worker command with the app of a module of `odd_workers`: ours, with one thing changed."""

    def start(module: str, environment: dict[str, str], *options: str, ready: bool = True) -> RunningProcess:
        arguments = ("-A", f"tests.proof.cases.odd_workers.{module}", "--quiet", "worker", *options)
        worker = processes.start_python(module, "-m", "celery", *arguments, env=environment, cwd=ROOT)
        if ready:
            worker.wait_for_log("worker_started", timeout=60)
        return worker

    return start
