"""From a folder as it was sent to the path of a row: decode once, normalise, refuse what is no plain path."""

import re
import unicodedata
from typing import Final
from urllib.parse import unquote_to_bytes

from oncebox_notes.settings import FOLDER_DEPTH_LIMIT, FOLDER_LENGTH_LIMIT

_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


class InvalidFolderError(ValueError):
    """The path can name no folder; the message says why."""


def resolve(sent: str) -> str:
    """The path under the tenant that `sent` means; raises `InvalidFolderError`.

    Percent escapes are decoded exactly once, so `%252e` is a segment named `%2e` and never a dot. All checks
    look at the decoded path: nothing can be smuggled past them in an escape.
    """
    if _BROKEN_ESCAPE.search(sent):
        raise InvalidFolderError("has a % that does not begin an escape; write %25 for a percent sign")
    try:
        decoded = unquote_to_bytes(sent).decode("utf-8")
    except UnicodeError:
        raise InvalidFolderError("is not valid UTF-8 after percent-decoding") from None
    path = unicodedata.normalize("NFC", decoded)
    if len(path) > FOLDER_LENGTH_LIMIT:
        raise InvalidFolderError(f"has {len(path)} characters; the limit is {FOLDER_LENGTH_LIMIT}")
    segments = path.split("/")
    if len(segments) > FOLDER_DEPTH_LIMIT:
        raise InvalidFolderError(f"has {len(segments)} segments; the limit is {FOLDER_DEPTH_LIMIT}")
    for segment in segments:
        _check_segment(segment)
    return path


def _check_segment(segment: str) -> None:
    if not segment.strip():
        raise InvalidFolderError("has an empty segment; write it without leading, trailing or double slashes")
    if segment in {".", ".."}:
        raise InvalidFolderError(f"has the segment {segment!r}; write the path out")
    if "\\" in segment:
        raise InvalidFolderError("has a backslash; segments are separated by /")
    if any(unicodedata.category(character) == "Cc" for character in segment):
        raise InvalidFolderError("has a control character")
