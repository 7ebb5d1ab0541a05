"""When the relay looks again."""

import pytest

from oncebox_worker.relay import _OUTAGE
from oncebox_worker.waking import pauses


def test_after_a_wake_up_the_relay_looks_three_more_times() -> None:
    """A commit at the same time as another stays silent and may become visible a little later: 5, 20 and 50 ms."""
    assert list(pauses()) == [0.005, 0.02, 0.05]


def test_the_delay_between_tries_in_an_outage_grows_to_a_ceiling() -> None:
    """Exponential with full jitter, at most five seconds: a broker that returns is met soon, and by not all at once."""
    longest = [_OUTAGE.delay_s(failures, lambda: 1.0) for failures in range(8)]
    assert longest == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert _OUTAGE.delay_s(7, lambda: 0.5) == pytest.approx(2.5)
