"""Fixtures for all tests. What needs a service starts it or asks for it when the first test wants it."""

import os
import re
import secrets
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

from tests.support import databases, skips
from tests.support.databases import DatabaseServer
from tests.support.processes import Processes
from tests.support.rabbitmq import RabbitMQ

GIVEN_REDIS = "ONCEBOX_TEST_REDIS_URL"
MARKED_BY_FIXTURE = {"postgres_url": "database", "rabbitmq_url": "rabbitmq"}

# Two shared cores: an example that takes long says nothing about the code.
hypothesis.settings.register_profile("oncebox", deadline=None, derandomize=skips.in_ci())
hypothesis.settings.load_profile("oncebox")


@pytest.hookimpl(tryfirst=True)  # before -m looks at the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture, marker in MARKED_BY_FIXTURE.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    skips.fail_if_forbidden(report)
    processes = getattr(item, "funcargs", {}).get("processes")
    if report.failed and isinstance(processes, Processes):
        report.sections.extend(
            (f"end of the log of {process}", process.tail()) for process in processes.started
        )
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    skips.fail_if_forbidden(report)
    return report


def pytest_unconfigure(config: pytest.Config) -> None:
    if databases.GIVEN in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        # The controller of pytest-xdist runs no fixture; its folder is known in no public way.
        base: Path = config._tmp_path_factory.getbasetemp()  # pyright: ignore
        DatabaseServer(base, pytest_pid=os.getpid()).clean_up()


@pytest.fixture
def processes(tmp_path: Path) -> Generator[Processes, None, None]:
    """Starts real processes; all are gone after the test, and a failure shows the end of their logs."""
    started = Processes(tmp_path)
    yield started
    started.reap()


@pytest.fixture(scope="session")
def database_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> DatabaseServer:
    """The session's PostgreSQL, started by whoever asks for its address first."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        return DatabaseServer(base.parent, pytest_pid=os.getppid())
    return DatabaseServer(base, pytest_pid=os.getpid())


@pytest.fixture(scope="session")
def postgres_url(database_server: DatabaseServer) -> str:
    """The address of the database ``postgres``, with the right to create databases."""
    return database_server.url


@pytest.fixture
def empty_database(database_server: DatabaseServer, postgres_url: str) -> Generator[str, None, None]:
    """A database of this test's own, without tables."""
    with database_server.empty() as url:
        yield url


@pytest.fixture
def sender_database(database_server: DatabaseServer, postgres_url: str) -> Generator[str, None, None]:
    """A database of this test's own, with the sender's tables."""
    with database_server.clone(database_server.template("sender", databases.migrate_sender)) as url:
        yield url


@pytest.fixture
def notes_database(database_server: DatabaseServer, postgres_url: str) -> Generator[str, None, None]:
    """A database of this test's own, with the note service's tables."""
    with database_server.clone(database_server.template("notes", databases.migrate_notes)) as url:
        yield url


@pytest.fixture(scope="session")
def rabbitmq() -> Generator[RabbitMQ, None, None]:
    broker = RabbitMQ()
    yield broker
    broker.clean_up()


@pytest.fixture
def rabbitmq_url(rabbitmq: RabbitMQ) -> str:
    """A broker with a virtual host of this test's own where one can be made; use ``queue_prefix`` anyway."""
    if reason := rabbitmq.unreachable():
        pytest.skip(reason)
    return rabbitmq.fresh_url()


@pytest.fixture
def queue_prefix(request: pytest.FixtureRequest) -> str:
    """Begins the name of each queue and exchange of this test, which nobody else uses."""
    readable = re.sub(r"\W+", "-", request.node.name)[:40].strip("-")
    return f"{readable}-{secrets.token_hex(4)}"


@pytest.fixture(scope="session")
def redis_server_url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str, None, None]:
    given = os.environ.get(GIVEN_REDIS)
    if given:
        yield given
        return
    from oncebox_operate.embedded import EmbeddedValkey

    with EmbeddedValkey(tmp_path_factory.mktemp("valkey")) as server:
        yield server.url()


@pytest.fixture
def redis_url(redis_server_url: str) -> str:
    """A broker of the Redis protocol, emptied for this test unless it is one that was given to us."""
    if GIVEN_REDIS not in os.environ:
        import redis

        with redis.Redis.from_url(redis_server_url) as client:
            client.flushall()
    return redis_server_url
