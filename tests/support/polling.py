"""Waiting for something to become true, with a limit."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def eventually(
    check: Callable[[], Value],
    *,
    timeout: float = 10.0,
    interval: float = 0.02,
    what: str | Callable[[], str] = "",
) -> Value:
    """The first truthy value of ``check``; an AssertionError after ``timeout`` seconds.

    A check that asserts and returns nothing fails with its own assertion: return something truthy, or
    let it raise AssertionError until it holds and return True. ``what`` is said when the time is up.
    """
    limit = time.monotonic() + timeout
    while True:
        try:
            value = check()
            last = f"the last value was {value!r}"
        except AssertionError as error:
            last, value = f"the last check said: {error}", None
        if value:
            return value
        if time.monotonic() > limit:
            said = what() if callable(what) else what
            raise AssertionError(f"not within {timeout:g} s{f': {said}' if said else ''}; {last}")
        time.sleep(interval)
