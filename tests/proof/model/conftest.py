"""A real outbox to compare the model with."""

from collections.abc import Generator

import pytest

from tests.integration.outbox import scenes
from tests.proof.model.stage import Table


@pytest.fixture
def table(sender_database: str) -> Generator[Table]:
    """A database of this test's own, to be filled with rows of the model."""
    with scenes.sender(sender_database) as sender:
        yield Table(sender)
