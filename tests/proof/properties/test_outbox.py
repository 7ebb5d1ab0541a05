"""The outbox on PostgreSQL, in random histories: what it says is what a small model says, and never untrue."""

from collections import Counter
from collections.abc import Callable, Generator

import pytest
from hypothesis.stateful import run_state_machine_as_test

from oncebox_models.outcomes import Outcome
from oncebox_models.states import State
from oncebox_outbox import Outbox
from oncebox_outbox.pruning import prune
from tests.integration.outbox import scenes
from tests.integration.outbox.scenes import Sender, saved, write
from tests.proof.properties.budget import tries
from tests.proof.properties.outbox_machine import OutboxHistory, Taken

Bind = Callable[[Taken], type[OutboxHistory]]

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


@pytest.fixture(scope="module")
def bind(sender: Sender) -> Bind:
    """The histories of this database; `taken` counts their arrows."""

    def bound(taken: Taken) -> type[OutboxHistory]:
        return type("Bound", (OutboxHistory,), {"sender": sender, "taken": taken})

    return bound


def test_an_answer_counts_although_its_call_was_pruned(sender: Sender) -> None:
    """Found by the histories below: it broke a foreign key, so that even a contradiction could not be written down."""
    outbox = Outbox(tenant="pruned", principal="researcher", destination="notes")
    (enqueued,) = sender.enqueue(write("note-1"), outbox=outbox)
    send = sender.claim_one(enqueued.id)
    sender.answer(send, Outcome.REFUSED)
    seal = sender.claim_one(enqueued.id)
    sender.answer(seal, Outcome.SEALED)
    prune(sender.worker, older_than_s=0.0)
    assert sender.scalar("select count(*) from oncebox.call") == 0
    assert sender.answer(seal, Outcome.SEALED).finals == {}
    assert sender.settle(send, saved(send)).finals == {enqueued.id: State.SAVED}
    assert sender.violations() == ["saved_after_refused"]
    sender.change("truncate oncebox.violation", ())


FIRST = 4
"""The place of note-1 among the four operations that a history begins with."""


def test_the_late_seal_of_an_overtaken_call_is_not_heard(bind: Bind) -> None:
    """The word would depend on what was wanted long ago; the call that lives brings the same seal, and the right one."""
    history = bind(Counter())()
    steps = [
        history.begin,
        lambda: history.work(FIRST, "keys held", lost=True, rounds=1),
        lambda: history.cancel(FIRST),
        lambda: history.overtake(FIRST, "fair", late=True),
    ]
    for step in steps:
        step()
        history.the_database_says_what_the_model_says()
    assert history.acts.operations["note-1"].state is State.UNKNOWN
    history.teardown()
    assert history.acts.operations["note-1"].reason == "cancelled"


def test_what_the_outbox_says_is_true_in_every_history(bind: Bind) -> None:
    """F9, F10, F31, R17: zombies, lost and late packets, two workers, cancels and deadlines, in any order."""
    taken: Taken = Counter()
    run_state_machine_as_test(bind(taken), settings=tries(EXAMPLES, steps=40))
    said = {f"{was} -> {now}": number for (was, now), number in taken.items()}
    assert USUAL - taken.keys() == set(), f"no history went there: {said}"
    assert len(taken) >= FEWEST_ARROWS, said
