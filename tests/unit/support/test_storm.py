"""A storm is decided by its seed alone."""

import subprocess
import sys
from collections import Counter

import pytest

from oncebox_operate.faults.barriers import other_order
from oncebox_operate.faults.storm import PLANNABLE, Fault, Gust, Storm

WEIGHTS: dict[Fault, float] = {Fault.SWALLOW: 3, Fault.LOSE: 1, Fault.COPY_LATE: 1}


def gusts(storm: Storm, count: int = 200) -> list[Gust]:
    return [storm.gust(n) for n in range(count)]


def test_one_seed_one_storm_whatever_was_asked_before_and_however_it_was_written_down() -> None:
    storm = Storm(7, WEIGHTS, calm=5)
    assert gusts(storm) == gusts(storm)
    assert [storm.gust(n) for n in reversed(range(200))] == gusts(storm)[::-1]
    assert gusts(Storm(7, dict(reversed(WEIGHTS.items())), calm=5)) == gusts(storm)


def test_another_seed_is_another_storm() -> None:
    assert len({tuple(gusts(Storm(seed, WEIGHTS, calm=5))) for seed in range(20)}) == 20


def test_another_process_sees_the_same_storm() -> None:
    """Nothing depends on the process's own hash seed."""
    program = (
        "from oncebox_operate.faults.storm import Fault, Storm;"
        "print([Storm(7, {Fault.SWALLOW: 3, Fault.LOSE: 1}, calm=1).gust(n) for n in range(50)])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert said == {f"{gusts(Storm(7, {Fault.SWALLOW: 3, Fault.LOSE: 1}, calm=1), 50)}\n"}


def test_weights_are_kept_to() -> None:
    counts = Counter(gust.fault for gust in gusts(Storm(1, WEIGHTS, calm=5), 10_000))
    for fault, share in ((Fault.SWALLOW, 0.3), (Fault.LOSE, 0.1), (Fault.COPY_LATE, 0.1), (None, 0.5)):
        assert abs(counts[fault] / 10_000 - share) < 0.02
    assert {gust.fault for gust in gusts(Storm(1, {Fault.LOSE: 1}))} == {Fault.LOSE}


def test_the_details_stay_within_their_limits() -> None:
    all_of_them = gusts(Storm(3, {Fault.SLOW: 1}, seconds=(0.2, 0.4), resets=0.25, keep=10), 2000)
    assert all(0.2 <= gust.seconds <= 0.4 and 0 <= gust.keep < 10 for gust in all_of_them)
    assert 0.2 < sum(gust.then == "reset" for gust in all_of_them) / 2000 < 0.3


@pytest.mark.parametrize(
    ("weights", "calm"), [({}, 0), ({Fault.LOSE: -1}, 2), ({Fault.HOLD: 1}, 1), ({Fault.ANSWER: 1}, 0)]
)
def test_what_is_no_storm_is_refused(weights: dict[Fault, float], calm: float) -> None:
    with pytest.raises(ValueError, match=r"weights|planned"):
        Storm(1, weights, calm=calm)


def test_every_fault_that_needs_nobody_can_be_planned() -> None:
    assert PLANNABLE | {Fault.HOLD, Fault.HOLD_REPLY, Fault.REORDER, Fault.ANSWER} == set(Fault)


@pytest.mark.parametrize("size", range(1, 9))
def test_another_order_is_a_permutation_and_not_the_first(size: int) -> None:
    for seed in range(50):
        order = other_order(seed, size)
        assert sorted(order) == list(range(size))
        assert size == 1 or order != sorted(order)
        assert order == other_order(seed, size)
    assert other_order(0, 0) == []
