"""What agents want: known to everybody from the seed alone, at the rate that was asked for."""

import pytest

from tests.proof.chaos.agent import writes
from tests.proof.chaos.agents import AGENTS, transactions_a_second
from tests.proof.chaos.plan import Size
from tests.proof.chaos.wishes import wish

MANY = [wish(1, agent, number) for agent in range(AGENTS) for number in range(1000)]


def test_a_wish_is_the_same_for_whoever_asks() -> None:
    assert wish(7, 2, 41) == wish(7, 2, 41)
    assert wish(7, 2, 41) != wish(8, 2, 41)
    assert writes(wish(7, 2, 41)) == writes(wish(7, 2, 41))


def test_no_two_operations_share_a_name() -> None:
    names = [operation_id for one in MANY for operation_id in one.operation_ids]
    assert len(set(names)) == len(names)


def test_some_are_rolled_back_and_some_belong_to_an_order() -> None:
    rolled_back = sum(one.rolled_back for one in MANY) / len(MANY)
    ordered = sum(one.ordering_key is not None for one in MANY) / len(MANY)
    assert 0.04 < rolled_back < 0.12
    assert 0.05 < ordered < 0.15


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_all_agents_together_commit_at_the_rate(seed: int) -> None:
    size = Size(900, 60, seed)
    wishes = int(size.seconds * transactions_a_second(size))
    committed = sum(
        len(one.operation_ids)
        for agent in range(AGENTS)
        for one in (wish(seed, agent, number) for number in range(wishes))
        if not one.rolled_back
    )
    assert committed == pytest.approx(60 * 900, rel=0.03)
