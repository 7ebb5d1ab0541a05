"""Fixtures of the note service's tests: a service with a database of its own, and clients."""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.notes.running import RunningService, Sender, running


@pytest.fixture
def start_service(
    notes_database: str, tmp_path: Path
) -> Generator[Callable[..., RunningService], None, None]:
    """Starts a service with the given settings on this test's database."""
    with ExitStack() as stack:

        def start(**settings: Any) -> RunningService:
            return stack.enter_context(running(notes_database, tmp_path, **settings))

        yield start


@pytest.fixture
def service(start_service: Callable[..., RunningService]) -> RunningService:
    """A service with short lock waits; its database has no tenants yet."""
    return start_service(lock_timeout_seconds=1.0)


@pytest.fixture
def researcher(service: RunningService) -> Sender:
    """The principal demo/researcher, who may write to drafts."""
    return service.principal()


@pytest.fixture
def worker(service: RunningService, researcher: Sender) -> Sender:
    """A delegate of the tenant demo."""
    return service.delegate("demo")
