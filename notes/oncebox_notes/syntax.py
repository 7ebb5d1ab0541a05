"""The syntax of keys, deadlines and entity tags, wherever they stand: in a header, a path or a batch item."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from oncebox_notes.problems import Fault

_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_RFC3339: Final = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?"
    r"([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_STRONG_TAG: Final = re.compile(r'"([\x21\x23-\x7e]+)"')

KEY_RULE: Final = "1 to 128 characters of A-Z a-z 0-9 . _ : - that begin with a letter or a digit"


def is_key(value: str) -> bool:
    return _KEY.fullmatch(value) is not None


def key_in_header(value: str) -> str | None:
    """The key in a header value: a bare token or an RFC 8941 string; none when it is neither."""
    bare = value[1:-1] if len(value) > 2 and value[0] == value[-1] == '"' else value
    return bare if is_key(bare) else None


def parse_moment(value: str) -> datetime | None:
    """An RFC 3339 moment, in UTC; none when it is not one."""
    if not _RFC3339.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def check_deadline(value: str, path: str, now: datetime, window_seconds: int) -> datetime | Fault:
    """The deadline, or what is wrong with it. One that has passed is no fault: the transaction decides that."""
    moment = parse_moment(value)
    if moment is None:
        return Fault(
            "deadline_invalid", path, "must be an RFC 3339 time with an offset, e.g. 2030-01-31T12:00:00Z"
        )
    if moment > now + timedelta(seconds=window_seconds):
        return Fault(
            "deadline_invalid",
            path,
            f"is more than the admission window of {window_seconds} seconds ahead of the server's {format_moment(now)}",
        )
    return moment


def parse_tag(value: str) -> str | None:
    """The tag in an `If-Match` of exactly one strong tag, without its quotes; none for anything else."""
    match = _STRONG_TAG.fullmatch(value.strip())
    return match[1] if match else None


def format_moment(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds and Z: one form everywhere."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
