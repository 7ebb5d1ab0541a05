"""One installation for all rows that a test process plays."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.proof.matrix import town as towns
from tests.proof.matrix.forks import Forks
from tests.proof.matrix.town import Town
from tests.support import databases
from tests.support.databases import DatabaseServer
from tests.support.rabbitmq import RabbitMQ

RESULTS = "ONCEBOX_MATRIX_RESULTS"


@pytest.fixture(scope="session")
def town(
    database_server: DatabaseServer,
    postgres_url: str,
    rabbitmq: RabbitMQ,
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Town, None, None]:
    if reason := rabbitmq.unreachable():
        pytest.skip(reason)
    with (
        Forks() as forks,
        database_server.clone(database_server.template("sender", databases.migrate_sender)) as sender,
        database_server.clone(database_server.template("notes", databases.migrate_notes)) as notes,
        towns.town(forks, sender, notes, rabbitmq.fresh_url(), tmp_path_factory.mktemp("matrix")) as opened,
    ):
        yield opened


@pytest.fixture(scope="session")
def results() -> Path | None:
    """Where the rows write what became of them, if anywhere."""
    given = os.environ.get(RESULTS)
    return None if given is None else Path(given)
