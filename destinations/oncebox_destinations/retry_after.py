"""Retry-After: seconds or an HTTP date, from a header that may say anything."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from oncebox_destinations.received_json import Object, is_integer, is_object

LONGEST_S: Final = 86_400.0
"""A longer wait than a day is taken as a day: the deadline bounds the operation, and intervals overflow."""


def from_headers(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, from 0 to LONGEST_S; None when the header is absent or unreadable.

    A date counts from the answer's own Date header where there is one: the two clocks need not agree.
    """
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return _bounded(float(value[:12]))
    until = _date(value)
    if until is None:
        return None
    return _bounded((until - (_date(headers.get("date", "")) or now)).total_seconds())


def from_problem(problem: Object) -> float | None:
    """Seconds to wait as a problem's `retry.after_s` says, from 0 to LONGEST_S."""
    retry = problem.get("retry")
    after_s = retry.get("after_s") if is_object(retry) else None
    if is_integer(after_s):
        return _bounded(min(after_s, LONGEST_S))
    return _bounded(after_s) if isinstance(after_s, float) and after_s == after_s else None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_S)


def _date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    # "-0000" is read as a moment without a zone; HTTP dates are in UTC.
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
