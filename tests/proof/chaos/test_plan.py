"""The plan: the same for a seed, enough of each kind, none of a lane on top of another, and time to drain."""

from collections import Counter
from itertools import pairwise

import pytest

from tests.proof.chaos.kinds import ONCE, TAKES_S, FaultKind, Lane
from tests.proof.chaos.plan import Size, Strike, last_strike_s, plan

LEASE_S = 22.0
FULL = Size(900, 60, 1)
SHORT = Size(60, 60, 1)


def kinds_of(size: Size) -> Counter[FaultKind]:
    return Counter(strike.kind for strikes in plan(size, LEASE_S).values() for strike in strikes)


def test_a_seed_decides_everything() -> None:
    assert plan(FULL, LEASE_S) == plan(Size(900, 60, 1), LEASE_S)
    assert plan(FULL, LEASE_S) != plan(Size(900, 60, 2), LEASE_S)


def test_a_full_run_plans_more_than_it_must_meet() -> None:
    planned = kinds_of(FULL)
    for kind in FaultKind:
        assert planned[kind] > FULL.required(kind) or kind in ONCE, kind
    assert FULL.required_faults >= 150
    assert planned.total() >= FULL.required_faults + 20


def test_of_each_kind_eight_are_required_in_a_full_run_and_one_in_a_short_one() -> None:
    for kind in FaultKind:
        assert FULL.required(kind) == (1 if kind in ONCE else 8)
        assert SHORT.required(kind) == 1
        assert kinds_of(SHORT)[kind] >= 1


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("seconds", [60, 120, 900, 3600])
def test_faults_of_a_lane_do_not_overlap_and_end_in_time(seconds: int, seed: int) -> None:
    size = Size(seconds, 60, seed)
    for lane, strikes in plan(size, LEASE_S).items():
        for one, next_one in pairwise(strikes):
            assert one.at_s + TAKES_S[one.kind] <= next_one.at_s, (lane, one, next_one)
        assert strikes[0].at_s > 0
        assert strikes[-1].at_s <= last_strike_s(lane, size, LEASE_S), (lane, strikes[-1])


def test_faults_of_different_lanes_overlap() -> None:
    """A party is away while others are killed: that is where the hard cases are."""
    strikes = [strike for of_lane in plan(FULL, LEASE_S).values() for strike in of_lane]
    under_way = [sum(_covers(strike, second) for strike in strikes) for second in range(30, 840)]
    assert sum(count >= 2 for count in under_way) > 250


def test_what_a_dead_worker_holds_lapses_while_the_run_lasts() -> None:
    for size in (SHORT, FULL):
        assert last_strike_s(Lane.WORKERS, size, LEASE_S) + LEASE_S < size.seconds
        assert last_strike_s(Lane.ZOMBIES, size, LEASE_S) + LEASE_S < size.seconds


def test_every_lane_has_a_kind() -> None:
    assert {kind.lane for kind in FaultKind} == set(Lane)


@pytest.mark.parametrize(("seconds", "rate"), [(10, 60), (900, 0)])
def test_a_run_without_time_or_work_is_refused(seconds: float, rate: float) -> None:
    with pytest.raises(ValueError, match="30 s or more"):
        Size(seconds, rate, 1)


def _covers(strike: Strike, second: int) -> bool:
    return strike.at_s <= second < strike.at_s + TAKES_S[strike.kind]
