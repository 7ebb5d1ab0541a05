"""Durations and moments as people type them."""

from datetime import UTC, datetime, timedelta

import pytest

from oncebox_operate import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("0", 0),
        ("1.5", 1.5),
        ("500ms", 0.5),
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("2d", 172_800),
        (" 72H ", 259_200),
    ],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert durations.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", " ", "soon", "-5", "5 minutes", "1h-2m", "nan", "inf", "1e9", "40000d"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"1h30m|hundred years"):
        durations.seconds(text)


def test_a_deadline_is_a_duration_or_a_moment() -> None:
    assert durations.deadline("72h") == timedelta(hours=72)
    assert durations.deadline("2031-01-02T03:04:05Z") == datetime(2031, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_moment_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        durations.deadline("2031-01-02T03:04:05")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.85, "850 ms"),
        (4.25, "4.2 s"),
        (185, "3 min 5 s"),
        (7_800, "2 h 10 min"),
        (273_600, "3 d 4 h"),
    ],
)
def test_a_duration_is_shown_in_at_most_two_units(seconds: float, text: str) -> None:
    assert durations.shown(seconds) == text
