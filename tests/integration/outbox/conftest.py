"""The sender's database, with an agent and a worker on it."""

from collections.abc import Generator

import pytest

from tests.integration.outbox import scenes
from tests.integration.outbox.scenes import Sender


@pytest.fixture
def sender(sender_database: str) -> Generator[Sender]:
    """A database of this test's own with engines for an agent and a worker."""
    with scenes.sender(sender_database) as parties:
        yield parties
