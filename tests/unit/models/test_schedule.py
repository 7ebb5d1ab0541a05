"""The one retry schedule: exact with the jitter injected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncebox_models.schedule import RetrySchedule

SCHEDULE = RetrySchedule(base_s=0.5, ceiling_s=30.0)


def _longest() -> float:
    return 1.0


def test_the_longest_delays_double_up_to_the_ceiling() -> None:
    delays = [SCHEDULE.delay_s(retries, _longest) for retries in range(9)]
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


@pytest.mark.parametrize(("jitter", "delay_s"), [(0.0, 0.0), (0.25, 1.0), (0.5, 2.0), (0.75, 3.0)])
def test_the_jitter_is_full(jitter: float, delay_s: float) -> None:
    """From nothing to the longest, so that many clients do not come back in step."""
    assert SCHEDULE.delay_s(3, lambda: jitter) == delay_s


def test_ten_thousand_retries_do_not_overflow() -> None:
    assert SCHEDULE.delay_s(10_000, _longest) == 30.0


@pytest.mark.parametrize(("jitter", "delay_s"), [(0.0, 12.0), (0.5, 13.0)])
def test_retry_after_is_a_floor_with_the_jitter_on_top(jitter: float, delay_s: float) -> None:
    assert SCHEDULE.delay_s(2, lambda: jitter, not_before_s=12.0) == delay_s


@given(
    st.integers(0, 10_000),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 10_000),
    st.floats(0.001, 10),
    st.floats(10, 1_000),
)
def test_a_delay_is_bounded_by_the_floor_and_the_ceiling(
    retries: int, jitter: float, floor_s: float, base_s: float, ceiling_s: float
) -> None:
    delay_s = RetrySchedule(base_s, ceiling_s).delay_s(retries, lambda: jitter, not_before_s=floor_s)
    assert floor_s <= delay_s <= floor_s + ceiling_s


@pytest.mark.parametrize(("base_s", "ceiling_s"), [(0.0, 30.0), (-1.0, 30.0), (31.0, 30.0)])
def test_a_schedule_that_makes_no_sense_is_refused_with_its_values(base_s: float, ceiling_s: float) -> None:
    with pytest.raises(ValueError, match=f"base_s={base_s}, ceiling_s={ceiling_s}"):
        RetrySchedule(base_s, ceiling_s)
