"""No reachable trace has two notes, or a definite answer that is later contradicted; and every rule is needed for that,
or for what it says it is for. Run by hand: `python -m tests.proof.model --help`."""

import pytest

from tests.proof.model import telling
from tests.proof.model.__main__ import BOUND
from tests.proof.model.arrows import untaken
from tests.proof.model.exploration import Exploration, Explored
from tests.proof.model.properties import PROPERTIES
from tests.proof.model.rules import REDUNDANT, RULES, SAFETY, SMALL, Rule
from tests.proof.model.sender import Protocol, bounded

pytestmark = pytest.mark.timeout(600)
EVERYTHING = frozenset(PROPERTIES)
# A change that no arrow allows is a word that the table does not know: these rules are for true words, too.
OF_THEIR_OWN = [rule for rule in RULES if rule.keeps not in SAFETY | {"arrows"}]


def _explored(protocol: Protocol, wanted: frozenset[str] = EVERYTHING) -> Explored:
    explored = Exploration(protocol, wanted).run()
    print(telling.numbers(explored))
    return explored


def _nothing_found(explored: Explored) -> None:
    assert explored.found is None, "\n" + telling.trace(explored.found)


def test_nothing_that_is_said_is_ever_contradicted() -> None:
    """Packets late, repeated and out of order, stopped workers, grants that come and go, clocks that step."""
    explored = _explored(Protocol(policy=bounded(BOUND)))

    _nothing_found(explored)
    assert explored.states > 100_000, "an exploration that stays at home shows nothing"
    assert untaken(explored.changes) == []


def test_with_prompt_packets_nothing_is_sent_twice() -> None:
    """Where a worker's silence means only a lost reply, the receiver is asked first, and "retrying" means no note."""
    _nothing_found(_explored(Protocol(calm=True)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_is_missed(rule: Rule) -> None:
    explored = _explored(rule.without(rule.start()), frozenset({rule.keeps}))

    assert explored.found is not None, f"{rule.says}: nothing breaks without it, so it must leave"
    assert explored.found.broken == rule.keeps
    print(telling.trace(explored.found))


@pytest.mark.parametrize("rule", OF_THEIR_OWN, ids=lambda rule: rule.name)
def test_what_a_rule_is_not_there_for_holds_without_it(rule: Rule) -> None:
    """These rules keep a promise of their own, or save work: one note and true words do not hang on them."""
    _nothing_found(_explored(rule.without(Protocol(policy=SMALL)), SAFETY))


def test_a_guard_that_decides_nothing_is_known_to_decide_nothing() -> None:
    """A call counts its attempt at the claim: so what has no attempt has no call, and a test for its lease is idle."""
    whole = _explored(Protocol(policy=SMALL))
    without = _explored(REDUNDANT.without(Protocol(policy=SMALL)))

    _nothing_found(without)
    assert (without.states, without.transitions) == (whole.states, whole.transitions)
    assert (without.changes, without.seen) == (whole.changes, whole.seen)


def test_every_property_is_broken_by_the_lack_of_some_rule() -> None:
    """A property that nothing breaks would be one that cannot fail."""
    assert {rule.keeps for rule in RULES} == EVERYTHING - {REDUNDANT.keeps}
