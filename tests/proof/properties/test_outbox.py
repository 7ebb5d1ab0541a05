"""The outbox on PostgreSQL, in random histories: what it says is what a small model says, and never untrue."""

from collections import Counter
from collections.abc import Generator

import pytest
from hypothesis.stateful import run_state_machine_as_test

from oncebox_models.states import State
from tests.integration.outbox import scenes
from tests.integration.outbox.scenes import Sender
from tests.proof.properties.budget import tries
from tests.proof.properties.outbox_machine import OutboxHistory

EXAMPLES = 40
USUAL = {
    (None, State.PENDING),
    (State.PENDING, State.SENDING),
    (State.PENDING, State.NOT_SAVED),
    (State.SENDING, State.SAVED),
    (State.SENDING, State.UNKNOWN),
    (State.UNKNOWN, State.SAVED),
}
FEWEST_ARROWS = 10
"""That histories went along: the usual ones and some of the others, which are 27 together."""


@pytest.fixture(scope="module")
def sender(sender_database: str) -> Generator[Sender, None, None]:
    with scenes.sender(sender_database) as parties:
        yield parties


def test_what_the_outbox_says_is_true_in_every_history(sender: Sender) -> None:
    """F9, F10, F31, R17: zombies, lost and late packets, two workers, cancels and deadlines, in any order."""
    taken: Counter[tuple[State | None, State]] = Counter()

    class Bound(OutboxHistory):
        pass

    Bound.sender, Bound.taken = sender, taken
    run_state_machine_as_test(Bound, settings=tries(EXAMPLES, steps=40))
    print(taken)
    said = {f"{was} -> {now}": number for (was, now), number in taken.items()}
    assert USUAL - taken.keys() == set(), f"no history went there: {said}"
    assert len(taken) >= FEWEST_ARROWS, said
