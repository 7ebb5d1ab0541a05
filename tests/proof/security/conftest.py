"""Fixtures of the security proof: a note service as a process with two tenants of two principals, and a broker."""

from collections.abc import Generator

import pytest

from tests.proof.security.house import House, Party, built
from tests.support import databases
from tests.support.databases import DatabaseServer
from tests.support.processes import Processes
from tests.support.rabbitmq import RabbitMQ


@pytest.fixture(scope="session")
def broker_url(rabbitmq: RabbitMQ) -> str:
    """One virtual host for all these tests; each has queues of its own."""
    if reason := rabbitmq.unreachable():
        pytest.skip(reason)
    return rabbitmq.fresh_url()


@pytest.fixture(scope="module")
def house(
    database_server: DatabaseServer, postgres_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Generator[House]:
    """Shared by a module: its tests use keys of their own, and leave the four grants in force."""
    folder = tmp_path_factory.mktemp("house")
    processes = Processes(folder)
    with database_server.clone(database_server.template("notes", databases.migrate_notes)) as url:
        house = built(url, folder, processes)
        yield house
        house.close()
        processes.reap()


@pytest.fixture
def party(house: House) -> Generator[Party]:
    """One with a grant in force before and after."""
    party = house.party("demo/researcher")
    yield party
    house.grant("drafts", party.principal, tenant=party.tenant)
