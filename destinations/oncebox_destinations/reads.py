"""Bounded reads: a temporary failure is waited out with growing delays, and then it is said."""

import asyncio
import random as stdlib_random
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from oncebox_models.schedule import Random, RetrySchedule

TRIES: Final = 4
"""Tries of one read unless the caller says otherwise."""
LONGEST_WAIT_S: Final = 60.0
"""A receiver that asks for a longer wait than this ends the read: somebody is waiting for it."""

Value = TypeVar("Value")


class ReceiverUnreachable(Exception):
    """A read failed for reasons that may pass. The message says which URL, what was tried, how long."""


class ReadRefused(Exception):
    """The receiver answered a read with a definite no, or with something that is no answer of ours."""


class TemporaryFailure(Exception):
    """One try failed for a reason that may pass: one word for it, and the receiver's Retry-After."""

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason: Final = reason
        self.retry_after_s: Final = retry_after_s


async def read_with_retries(
    read: Callable[[], Awaitable[Value]],
    schedule: RetrySchedule,
    *,
    what: str,
    tries: int = TRIES,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    random: Random = stdlib_random.random,
    clock: Callable[[], float] = time.monotonic,
) -> Value:
    """The value of `read`, tried at most `tries` times with the schedule's delays between the tries.

    A delay is never shorter than the receiver's Retry-After. `what` names the request in the message, such as
    `GET http://…`. Raises ReceiverUnreachable when the last try fails with TemporaryFailure, or when a
    Retry-After is beyond LONGEST_WAIT_S; every other exception of `read` ends it at once.
    """
    if tries < 1:
        raise ValueError(f"a read needs at least one try, got tries={tries}")
    started, reasons = clock(), list[str]()
    while True:
        try:
            return await read()
        except TemporaryFailure as failure:
            reasons.append(failure.reason)
            wished = failure.retry_after_s or 0.0
            if len(reasons) >= tries or wished > LONGEST_WAIT_S:
                raise ReceiverUnreachable(_said(what, reasons, clock() - started, wished)) from failure
        await sleep(schedule.delay_s(len(reasons) - 1, random, not_before_s=wished))


def _said(what: str, reasons: list[str], seconds: float, wished: float) -> str:
    tries = "1 try" if len(reasons) == 1 else f"{len(reasons)} tries"
    wait = f"; it asks to come back in {wished:g} s" if wished > LONGEST_WAIT_S else ""
    return (
        f"{what} failed: {tries} in {seconds:.1f} s ({', '.join(reasons)}){wait}."
        " Check the URL and that the receiver is running, then try again"
    )
