"""pytest-celery's fixtures with the project's own parties. Its plugins are loaded by `make test-docker` only."""

from collections.abc import Generator
from typing import Any

import pytest
from pytest_celery import (
    CeleryBrokerCluster,
    CeleryTestBroker,
    CeleryTestSetup,
    CeleryTestWorker,
    RabbitMQContainer,
    RabbitMQTestBroker,
)
from pytest_docker_tools import container as container_fixture
from pytest_docker_tools import fxtr
from pytest_docker_tools import volume as volume_fixture
from pytest_docker_tools.wrappers import container as containers

from tests.celery import parties
from tests.celery.parties import Databases, Notes, Postgres, Relay, Worker
from tests.docker.conftest import engine_required, image

__all__ = ["engine_required", "image"]  # fixtures that these tests share with tests/docker

# A machine that carries /.dockerenv need not be a container: its ports are published to 127.0.0.1 all the same.
containers.tests_inside_container = lambda: False

# Their signatures show parameters that they fill in themselves.
container: Any = container_fixture
volume: Any = volume_fixture

NETWORK = "{default_pytest_celery_network.name}"


# Named, so that they are removed: an image's own volume would outlive its container.
postgres_volume = volume()
broker_volume = volume()

postgres = container(
    image="postgres:17",
    ports={"5432/tcp": None},
    environment=parties.SUPERUSER,
    volumes={"{postgres_volume.name}": {"bind": "/var/lib/postgresql/data", "mode": "rw"}},
    network=NETWORK,
    wrapper_class=Postgres,
    timeout=60,
)


@pytest.fixture
def databases(postgres: Postgres) -> Generator[Databases]:
    made = Databases.made(postgres)
    yield made
    made.close()


@pytest.fixture
def notes_env(databases: Databases) -> dict[str, str]:
    return {
        "ONCEBOX_NOTES_DATABASE_URL": databases.postgres.inside("notes"),
        "ONCEBOX_NOTES_HOST": "0.0.0.0",
        **parties.ROOMY,
    }


notes = container(
    image="{image}",
    command=["notes", "serve"],
    environment=fxtr("notes_env"),
    network=NETWORK,
    wrapper_class=Notes,
    timeout=60,
)


@pytest.fixture
def relay_env(databases: Databases, celery_broker_cluster_config: dict[str, Any]) -> dict[str, str]:
    return {
        "ONCEBOX_DATABASE_URL": databases.postgres.inside("oncebox"),
        "ONCEBOX_BROKER_URL": celery_broker_cluster_config["urls"][0],
        **parties.QUICK,
    }


relay = container(
    image="{image}",
    command=["relay"],
    environment=fxtr("relay_env"),
    network=NETWORK,
    wrapper_class=Relay,
    timeout=60,
)

# --- what pytest-celery asks for --------------------------------------------------------------------------


default_rabbitmq_broker = container(
    image="rabbitmq:4",
    ports={"5672/tcp": None},
    volumes={"{broker_volume.name}": {"bind": "/var/lib/rabbitmq", "mode": "rw"}},
    network=NETWORK,
    wrapper_class=RabbitMQContainer,
    timeout=120,
)


@pytest.fixture
def celery_broker_cluster(celery_rabbitmq_broker: RabbitMQTestBroker) -> Generator[CeleryBrokerCluster]:
    """RabbitMQ alone: what a Redis broker does differently is tested with processes."""
    cluster = CeleryBrokerCluster(celery_rabbitmq_broker)
    yield cluster
    cluster.teardown()


@pytest.fixture
def celery_backend_cluster() -> None:
    """No results are kept: what became of an operation is in the sender's database."""


@pytest.fixture
def celery_backend_cluster_config() -> None:
    """As above."""


@pytest.fixture
def default_worker_container_cls() -> type[Worker]:
    return Worker


@pytest.fixture
def default_worker_env(relay_env: dict[str, str], databases: Databases, notes: Notes) -> dict[str, str]:
    return {
        **relay_env,
        "ONCEBOX_NOTES_URL": f"http://{parties.hostname(notes)}:8320",
        "ONCEBOX_TOKEN": databases.token,
    }


default_worker_container = container(
    image="{image}",
    command=["worker"],
    environment=fxtr("default_worker_env"),
    network=NETWORK,
    wrapper_class=Worker,
    timeout=60,
)


@pytest.fixture
def worker(celery_setup: CeleryTestSetup) -> CeleryTestWorker:
    """The worker that runs."""
    assert celery_setup.worker is not None
    return celery_setup.worker


@pytest.fixture
def broker(celery_setup: CeleryTestSetup) -> CeleryTestBroker:
    """The broker that it uses."""
    assert celery_setup.broker is not None
    return celery_setup.broker
