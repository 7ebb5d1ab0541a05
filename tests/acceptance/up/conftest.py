"""Fixtures for `oncebox up`: a machine, and an `up` on it that several tests share."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.acceptance.up.running import Machine
from tests.support.processes import Processes, RunningProcess


@pytest.fixture
def machine(processes: Processes, tmp_path: Path) -> Machine:
    """A machine of this test's own; nothing runs on it."""
    return Machine(processes, tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Machine, RunningProcess], None, None]:
    """A machine with a running `up`, for all tests of a module: each speaks of its own operations."""
    folder = tmp_path_factory.mktemp("shared")
    started = Processes(folder)
    machine = Machine(started, folder)
    running = machine.ready_up()
    yield machine, running
    running.terminate(timeout=60)
    started.reap()
