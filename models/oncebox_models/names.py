"""Names people choose: what they may look like. Pure checks that return what is wrong, or None."""

import re
import unicodedata
from typing import Final

OPERATION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
PARTY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
LABEL_LENGTH: Final = 200
"""Longest run, step or ordering key, in characters."""


def wrong_operation_id(value: object) -> str | None:
    """What is wrong with an operation_id. A blank one is wrong, never "no id" (F7)."""
    if not isinstance(value, str):
        return f"must be a string, got {type(value).__name__}"
    if OPERATION_ID.fullmatch(value):
        return None
    if not value.strip() or all(unicodedata.category(character) in {"Cf", "Cc", "Zs"} for character in value):
        return "is blank; leave it out to have one derived from run, step and kind, or choose a name such as note-7"
    if len(value) > 128:
        return f"has {len(value)} characters; at most 128 are allowed"
    return f"{value[:60]!r} must start with a letter or digit and hold only letters, digits and . _ : -"


def wrong_party(value: object) -> str | None:
    """What is wrong with a tenant, principal or destination name."""
    if not isinstance(value, str):
        return f"must be a string, got {type(value).__name__}"
    if PARTY.fullmatch(value):
        return None
    if len(value) > 128:
        return f"has {len(value)} characters; at most 128 are allowed"
    return f"{value[:60]!r} must start with a letter or digit and hold only letters, digits and . _ : @ -"


def wrong_label(value: object) -> str | None:
    """What is wrong with a run, step or ordering key: free text of one line, not blank."""
    if not isinstance(value, str):
        return f"must be a string, got {type(value).__name__}"
    if not value.strip():
        return "is blank"
    if len(value) > LABEL_LENGTH:
        return f"has {len(value)} characters; at most {LABEL_LENGTH} are allowed"
    return wrong_text(value, multiline=False)


def wrong_text(value: str, *, multiline: bool = True) -> str | None:
    """What makes a string impossible to store and send as it is: NUL, lone surrogates, control characters."""
    if "\x00" in value:
        return f"holds a NUL character at position {value.index(chr(0))}; remove it"
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return f"holds a lone surrogate at position {error.start}; it is not valid Unicode text"
    if not multiline and any(unicodedata.category(character) == "Cc" for character in value):
        return "holds a control character; use one line of plain text"
    return None
