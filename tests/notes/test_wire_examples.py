"""The receiver's side of the contract: every example of docs/wire/examples against a running service."""

from collections.abc import Callable

import pytest

from oncebox_notes.problems import KINDS
from tests.notes import wire_examples
from tests.notes.running import RunningService

NOT_FROM_AN_EXAMPLE = {"rate_limited", "internal", "busy"}


@pytest.mark.parametrize("name", wire_examples.names())
def test_the_service_answers_as_the_example_says(
    name: str, start_service: Callable[..., RunningService]
) -> None:
    """Status, headers and body are those of the example; only ids, hashes and times may differ."""
    example = wire_examples.load(name)
    player = wire_examples.Player(start_service(lock_timeout_seconds=0.3))
    with player.given(example["given"]):
        response = player.send(example["request"])
    assert wire_examples.comparable(response) == wire_examples.comparable(example["response"])


def test_every_problem_code_has_an_example() -> None:
    """Those that need a broken database or a rate have tests of their own."""
    shown: set[str] = set()
    for name in wire_examples.names():
        body = wire_examples.load(name)["response"]["body"]
        shown.add(body.get("code", ""))
    assert set(KINDS) - shown == NOT_FROM_AN_EXAMPLE
