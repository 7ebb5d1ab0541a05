"""Fixtures of the property tests. A module shares its processes and databases: examples have keys of their own."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.notes.running import RunningService
from tests.proof.properties.budget import TIMES
from tests.proof.properties.serving import serving
from tests.proof.properties.target import Target, target_of
from tests.support import databases
from tests.support.databases import DatabaseServer
from tests.support.processes import Processes

_HERE = Path(__file__).parent
_LONGEST_S = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """More examples take longer, and a failing one is made small first."""
    for item in items:
        if item.path.parent == _HERE:
            item.add_marker(pytest.mark.timeout(_LONGEST_S * TIMES))


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Generator[Processes, None, None]:
    """As everywhere, but one for a module; a failure shows the end of their logs."""
    started = Processes(tmp_path_factory.mktemp("processes"))
    yield started
    started.reap()


@pytest.fixture(scope="module")
def sender_database(database_server: DatabaseServer, postgres_url: str) -> Generator[str, None, None]:
    """A database of this module's own, with the sender's tables."""
    with database_server.clone(database_server.template("sender", databases.migrate_sender)) as url:
        yield url


@pytest.fixture(scope="module")
def notes_database(database_server: DatabaseServer, postgres_url: str) -> Generator[str, None, None]:
    """A database of this module's own, with the note service's tables."""
    with database_server.clone(database_server.template("notes", databases.migrate_notes)) as url:
        yield url


@pytest.fixture(scope="module")
def service(
    notes_database: str, processes: Processes, tmp_path_factory: pytest.TempPathFactory
) -> Generator[RunningService, None, None]:
    """A note service in a process of its own; its database has no tenants yet."""
    with serving(notes_database, processes, tmp_path_factory.mktemp("notes")) as running:
        yield running


@pytest.fixture(scope="module")
def target(
    notes_database: str, processes: Processes, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Target, None, None]:
    """A note service that waits for a body only shortly, with a note and all that a request needs."""
    quick = {"request_limit_seconds": 3.0, "lock_timeout_seconds": 0.2}
    with (
        serving(notes_database, processes, tmp_path_factory.mktemp("notes"), **quick) as running,
        target_of(running) as found,
    ):
        yield found
