"""Fixtures of the tests that need a Docker engine: the image, and one project for all tests of a module."""

from collections.abc import Generator

import pytest

from tests.docker import engine
from tests.docker.project import Project


@pytest.fixture(scope="session", autouse=True)
def engine_required() -> None:
    """Before pytest-docker-tools asks for one in words of its own."""
    engine.require()


@pytest.fixture(scope="session")
def image() -> str:
    """The project's image."""
    return engine.image()


@pytest.fixture(scope="module")
def project(image: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[Project]:
    """An installation by docker-compose.yml; nothing runs until a test starts it."""
    with Project(image, tmp_path_factory.mktemp("project")) as started:
        yield started
