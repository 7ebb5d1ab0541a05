"""JSON from a receiver: read strictly, and kept as evidence only in a form and size that can be stored."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, TypeGuard, cast

MAX_TEXT: Final = 2_000
"""Longest string kept of a problem, in characters."""
MAX_MEMBERS: Final = 200
"""Most members or elements kept of one object or list of a problem."""
MAX_DEPTH: Final = 6

_NOT_STORABLE: Final = re.compile("[\x00\ud800-\udfff]")

Object = Mapping[str, object]


class Garbage(Exception):
    """Not the JSON object the wire promises."""


def parse_object(body: bytes) -> Object:
    """The object in a body. Raises Garbage for anything else: NaN, a repeated name, nesting without end."""
    try:
        value: object = json.loads(body.decode(), parse_constant=_refuse, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise Garbage(str(error)) from error
    if not is_object(value):
        raise Garbage(f"not an object but {type(value).__name__}")
    return value


def is_object(value: object) -> TypeGuard[Object]:
    """Whether it is a JSON object. The decoder makes no keys but strings."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether it is a JSON array."""
    return isinstance(value, list)


def is_integer(value: object) -> TypeGuard[int]:
    """Whether it is a JSON integer; true and false are not."""
    return type(value) is int


def storable(text: str) -> bool:
    """Whether PostgreSQL can hold it: no NUL, no lone surrogate."""
    return _NOT_STORABLE.search(text) is None


def evidence(problem: Object) -> Object:
    """A copy of a problem that can be stored: one hostile answer must not spoil its neighbours' settling."""
    return cast("Object", _cleaned(problem, MAX_DEPTH))  # an object comes back as an object


def _cleaned(value: object, depth: int) -> object:
    if isinstance(value, str):
        return _cleaned_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_object(value):
        members = list(value.items())[:MAX_MEMBERS] if depth else []
        return {_cleaned_text(name): _cleaned(member, depth - 1) for name, member in members}
    if is_list(value):
        return [_cleaned(element, depth - 1) for element in value[:MAX_MEMBERS]] if depth else []
    if is_integer(value) and abs(value) > 2**53:
        return str(value)
    return value


def _cleaned_text(text: str) -> str:
    shown = text[:MAX_TEXT].replace("\x00", "\ufffd")
    return shown if storable(shown) else shown.encode(errors="replace").decode()


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object names a member twice")
    return members
