"""Fixtures of the acceptance tests: an installation of real processes, made for one test."""

import secrets
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.acceptance.town import Places, Town
from tests.support import databases
from tests.support.databases import DatabaseServer
from tests.support.processes import Processes
from tests.support.rabbitmq import RabbitMQ


@pytest.fixture(scope="session")
def broker_url(rabbitmq: RabbitMQ) -> str:
    """One virtual host for all these tests: each has queues of its own, and making a host takes a second."""
    if reason := rabbitmq.unreachable():
        pytest.skip(reason)
    return rabbitmq.fresh_url()


@pytest.fixture
def build_town(
    sender_database: str,
    notes_database: str,
    queue_prefix: str,
    processes: Processes,
    tmp_path: Path,
) -> Generator[Callable[..., Town], None, None]:
    """Makes the test's installation: ``build_town(broker_url, call_timeout_s=1.0)``. Nothing runs in it yet."""
    with ExitStack() as stack:

        def build(broker: str, **settings: object) -> Town:
            places = Places(sender_database, notes_database, broker, queue_prefix, tmp_path)
            return stack.enter_context(Town(places, processes, **settings))

        yield build


@pytest.fixture
def new_town(build_town: Callable[..., Town], broker_url: str) -> Town:
    """An installation on RabbitMQ for this test alone; nothing runs in it yet."""
    return build_town(broker_url)


@pytest.fixture(scope="session")
def standing_town(
    database_server: DatabaseServer, broker_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Town, None, None]:
    folder = tmp_path_factory.mktemp("town")
    with (
        database_server.clone(database_server.template("sender", databases.migrate_sender)) as sender,
        database_server.clone(database_server.template("notes", databases.migrate_notes)) as notes,
    ):
        places = Places(sender, notes, broker_url, f"standing-{secrets.token_hex(4)}", folder)
        with Town(places, Processes(folder)) as town:
            yield town


@pytest.fixture
def town(standing_town: Town) -> Town:
    """An installation on RabbitMQ, whole when the test begins. Others use it, too, one test after another, since
    starting one takes seconds: a test speaks of its own keys only."""
    standing_town.be_whole()
    return standing_town


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows the end of the logs of an installation that its module shares."""
    report = yield
    town = getattr(item, "funcargs", {}).get("standing_town")
    if report.failed and isinstance(town, Town):
        report.sections.extend(
            (f"end of the log of {process}", process.tail(15)) for process in town.processes.started[-6:]
        )
    return report
