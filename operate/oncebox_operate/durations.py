"""Durations and moments as people type them: `90`, `90s`, `5m`, `72h`, `2d`, `1h30m`; `2031-01-02T03:04:05Z`."""

import re
from datetime import datetime, timedelta
from typing import Final

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_LONGEST_S: Final = 100 * 365 * 86_400.0


def seconds(text: str) -> float:
    """A duration in seconds; a bare number is seconds. Raises ValueError that shows the forms there are."""
    stripped = text.strip().lower()
    if re.fullmatch(r"\d+(?:\.\d+)?", stripped):
        found = float(stripped)
    elif stripped and _PART.sub("", stripped) == "":
        found = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(stripped))
    else:
        raise ValueError(f"{text!r} is not a duration; write for example 30s, 5m, 72h or 1h30m")
    if found > _LONGEST_S:
        raise ValueError(f"{text!r} is longer than a hundred years")
    return found


def deadline(text: str) -> datetime | timedelta:
    """A duration from now, or a moment with its time zone. Raises ValueError."""
    try:
        return timedelta(seconds=seconds(text))
    except ValueError as not_a_duration:
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            raise ValueError(
                f"{text!r} is neither a duration such as 72h nor a moment such as 2031-01-02T03:04:05Z"
            ) from not_a_duration
        if moment.tzinfo is None:
            raise ValueError(f"{text!r} has no time zone; write for example 2031-01-02T03:04:05Z") from None
        return moment


def shown(seconds: float) -> str:
    """A duration for people, in at most two units: `850 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"
