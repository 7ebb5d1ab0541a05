"""JSON as this service accepts it: UTF-8, no duplicate names, no NaN; the schemas hold strings only.

A fault that sits in one item of a batch must not harm its neighbours, so duplicate names and numbers are kept
as marked values, and whoever reads that item reports them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

Json: TypeAlias = "bool | str | JsonNumber | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True)
class JsonNumber:
    """A number as written, never converted: no schema of ours holds one."""

    text: str


class AmbiguousObject(dict[str, Json]):
    """An object in which a name occurs twice."""

    __slots__ = ("repeated",)
    repeated: str


class MalformedJsonError(ValueError):
    """The body as a whole is not JSON; the message says why, in words for the sender."""


def _object(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    ambiguous = AmbiguousObject(plain)
    ambiguous.repeated = _first_repeated(pairs)
    return ambiguous


def _first_repeated(pairs: Sequence[tuple[str, Json]]) -> str:
    """In one pass: a body may hold a million names, and nobody else is served meanwhile."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    raise AssertionError("no name occurs twice")


_decoder: Final = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=JsonNumber,
    parse_float=JsonNumber,
    parse_constant=JsonNumber,
)


def parse(body: bytes) -> Json:
    """The value in `body`; raises `MalformedJsonError`."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedJsonError(f"the body is not UTF-8 (byte {error.start})") from None
    try:
        return cast(Json, _decoder.decode(text))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise MalformedJsonError(f"the body is not JSON: {error.msg} at {place}") from None
    except RecursionError:
        raise MalformedJsonError("the body is nested too deeply") from None
