"""Reads wait with growing delays and stop; the delays are the one schedule's, on an injected clock."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from oncebox_destinations.reads import (
    ReadRefused,
    ReceiverUnreachable,
    TemporaryFailure,
    read_with_retries,
)
from oncebox_models.schedule import RetrySchedule

SCHEDULE = RetrySchedule(base_s=1.0, ceiling_s=5.0)


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


def read(
    results: Sequence[object], time: Time, *, tries: int = 6, random: Callable[[], float] = lambda: 1.0
) -> object:
    left = iter(results)

    async def once() -> object:
        result = next(left)
        if isinstance(result, Exception):
            raise result
        return result

    return asyncio.run(
        read_with_retries(
            once,
            SCHEDULE,
            what="GET http://notes.test/v1/capabilities",
            tries=tries,
            sleep=time.sleep,
            random=random,
            clock=time.clock,
        )
    )


def test_delays_grow_up_to_the_ceiling_and_the_tries_end() -> None:
    time = Time()
    with pytest.raises(ReceiverUnreachable) as caught:
        read([TemporaryFailure("connect_refused")] * 6, time)
    assert time.slept == [1.0, 2.0, 4.0, 5.0, 5.0]
    said = str(caught.value)
    assert "GET http://notes.test/v1/capabilities" in said
    assert "6 tries in 17.0 s" in said
    assert "connect_refused" in said


def test_jitter_takes_any_share_of_the_delay() -> None:
    time = Time()
    read([TemporaryFailure("timeout")] * 2 + ["value"], time, random=lambda: 0.25)
    assert time.slept == [0.25, 0.5]


def test_a_retry_after_is_waited_out_with_the_jitter_on_top() -> None:
    time = Time()
    assert read([TemporaryFailure("http_503", 7.0), "value"], time, random=lambda: 0.5) == "value"
    assert time.slept == [7.5]


def test_a_retry_after_beyond_patience_ends_the_read_without_waiting() -> None:
    time = Time()
    with pytest.raises(ReceiverUnreachable, match="come back in 3600 s"):
        read([TemporaryFailure("http_503", 3_600.0), "value"], time)
    assert time.slept == []


def test_a_value_at_the_first_try_waits_for_nothing() -> None:
    time = Time()
    assert read(["value"], time) == "value"
    assert time.slept == []


def test_a_definite_no_is_not_asked_again() -> None:
    time = Time()
    with pytest.raises(ReadRefused):
        read([ReadRefused("401"), "value"], time)
    assert time.slept == []


def test_one_try_is_one_try() -> None:
    time = Time()
    with pytest.raises(ReceiverUnreachable, match=r"1 try in 0\.0 s"):
        read([TemporaryFailure("dns")], time, tries=1)
    with pytest.raises(ValueError, match="at least one try"):
        read([], time, tries=0)
