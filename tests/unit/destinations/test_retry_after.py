"""Retry-After in its two forms, and whatever else stands there."""

from datetime import UTC, datetime

import pytest

from oncebox_destinations import retry_after

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 11:59:00 GMT", 0.0),
        ("Thu, 01 Jan 2026 12:00:30 -0000", 30.0),
        ("999999999999999999999", 86_400.0),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 86_400.0),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("٣", None),
        ("Thu, 99 Jan 2026 12:00:30 GMT", None),
    ],
)
def test_the_header(value: str, seconds: float | None) -> None:
    assert retry_after.from_headers({"retry-after": value}, NOW) == seconds


def test_no_header() -> None:
    assert retry_after.from_headers({}, NOW) is None


def test_a_date_counts_from_the_receivers_own_clock() -> None:
    headers = {"retry-after": "Thu, 01 Jan 2026 10:00:05 GMT", "date": "Thu, 01 Jan 2026 10:00:00 GMT"}
    assert retry_after.from_headers(headers, NOW) == 5.0


@pytest.mark.parametrize(
    ("retry", "seconds"),
    [
        ({"after_s": 3}, 3.0),
        ({"after_s": 2.5}, 2.5),
        ({"after_s": -1}, 0.0),
        ({"after_s": 10**400}, 86_400.0),
        ({"after_s": float("nan")}, None),
        ({"after_s": float("inf")}, 86_400.0),
        ({"after_s": True}, None),
        ({"after_s": "3"}, None),
        ({"after_s": None}, None),
        ({}, None),
        (None, None),
        ([], None),
    ],
)
def test_a_problems_retry_member(retry: object, seconds: float | None) -> None:
    assert retry_after.from_problem({"retry": retry}) == seconds
