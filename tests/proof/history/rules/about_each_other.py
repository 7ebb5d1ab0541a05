"""What was said, against what was said before to whomever."""

from collections.abc import Iterator
from functools import reduce

from oncebox_models.states import State
from tests.proof.history.indexed import History, States, definite_states, outbox_states, with_earlier
from tests.proof.history.statements import AbsentSaid, EnqueueSaid, ReceiverSaid, Statement
from tests.proof.history.violations import Finding


def definite_contradiction(history: History) -> Iterator[Finding]:
    """All definite statements on a key, of sender and receiver, whenever made, leave one end that fits them all."""
    for key, told in history.by_key.items():
        ends = _first_of_each(told)
        if ends and not reduce(frozenset[State].intersection, ends):
            listed = " and ".join(sorted(" or ".join(sorted(end)) for end in ends))
            yield Finding(key, f"definite statements contradict each other: {listed}", tuple(ends.values()))


def state_went_back(history: History) -> Iterator[Finding]:
    """What is said later can come of what was said before, by the arrows."""
    for key, told in history.by_key.items():
        outbox = [said for said in told if outbox_states(said.body) is not None]
        before: dict[States, Statement] = {}
        seen = 0
        for said, earlier in with_earlier(outbox):
            for one in earlier[seen:]:
                before.setdefault(outbox_states(one.body) or frozenset(), one)
            seen = len(earlier)
            now = outbox_states(said.body) or frozenset()
            for then, one in before.items():
                if not any(history.reachable[state] & now for state in then):
                    yield Finding(key, f"{_named(then)} became {_named(now)}", (one, said))
                    break


def receiver_took_back(history: History) -> Iterator[Finding]:
    """The receiver stays with completed and with sealed."""
    for key, told in history.by_key.items():
        receiver = [said for said in told if isinstance(said.body, ReceiverSaid)]
        ends = [said for said in receiver if definite_states(said.body) is not None]
        if not ends:
            continue
        first = min(ends, key=lambda said: said.answered_at)
        for said in receiver:
            if first.answered_at < said.asked_at and definite_states(said.body) is None:
                yield Finding(key, "the receiver took back what was final", (first, said))


def absent_after_commit(history: History) -> Iterator[Finding]:
    """An operation that somebody was told of is known to everyone who asks later."""
    for key, told in history.by_key.items():
        for said in told:
            if (
                isinstance(said.body, AbsentSaid)
                and history.known_since.get(key, said.asked_at) < said.asked_at
            ):
                yield Finding(key, "said not to exist after it was known", (said,))


def created_twice(history: History) -> Iterator[Finding]:
    """One identity is created once; everybody else is told that it exists."""
    for key, told in history.by_key.items():
        created = [said for said in told if isinstance(said.body, EnqueueSaid) and said.body.created]
        if len(created) > 1:
            yield Finding(key, f"created {len(created)} times", tuple(created))


def _first_of_each(told: list[Statement]) -> dict[States, Statement]:
    found: dict[States, Statement] = {}
    for said in told:
        states = definite_states(said.body)
        if states is not None:
            found.setdefault(states, said)
    return found


def _named(states: States) -> str:
    return " or ".join(sorted(states))
