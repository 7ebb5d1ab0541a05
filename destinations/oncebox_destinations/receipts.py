"""Reading receipts: a receiver's word counts only when it is complete."""

import re
from collections.abc import Mapping
from typing import Final

from oncebox_destinations.received_json import is_integer, is_object, storable
from oncebox_models.outcomes import Receipt

_HASH: Final = re.compile(r"[0-9a-f]{64}")
_TEXT_MEMBERS: Final = ("id", "folder", "etag", "location", "created_at")
_LONGEST: Final = 2_000
_SAFE_INTEGER: Final = 2**53 - 1


class Malformed(Exception):
    """Not a receipt: a member is missing or is not what it should be."""


def read_receipt(value: object) -> Receipt:
    """The receipt in an object with `operation_id`, `args_hash` and `note`. Raises Malformed.

    Other members are left out: a create, a replay and a status must give equal receipts, byte for byte.
    """
    if not is_object(value):
        raise Malformed("not an object")
    operation_id, args_hash, note = value.get("operation_id"), value.get("args_hash"), value.get("note")
    if not _is_text(operation_id) or not isinstance(args_hash, str) or not _HASH.fullmatch(args_hash):
        raise Malformed("operation_id or args_hash")
    if not is_object(note):
        raise Malformed("note")
    return Receipt(str(operation_id), args_hash, _read_note(note))


def _read_note(note: Mapping[str, object]) -> Mapping[str, object]:
    wrong = [name for name in _TEXT_MEMBERS if not _is_text(note.get(name))]
    version = note.get("version")
    if wrong or not is_integer(version) or not 0 < version <= _SAFE_INTEGER:
        raise Malformed(", ".join(wrong) or "version")
    return {"version": version} | {name: note[name] for name in _TEXT_MEMBERS}


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST and storable(value)
