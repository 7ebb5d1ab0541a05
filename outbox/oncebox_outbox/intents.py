"""Why a write is wanted: one intent per (tenant, principal, run, step), with one or more operations."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from oncebox_models.arguments import Fault
from oncebox_models.names import wrong_label, wrong_text

PURPOSE_LENGTH: Final = 2_000
"""Longest purpose, in characters."""
CONTEXT_BYTES: Final = 64 * 1024
"""Largest context, and largest trace context, in bytes of JSON."""
CONTEXT_DEPTH: Final = 8
"""Deepest nesting of a context."""
NUMBER_BITS: Final = 1_024
"""Largest whole number in a context: what a double can reach, too."""


@dataclass(frozen=True, slots=True)
class Intent:
    """Why. `run` and `step` name the place in the agent's work; `purpose` is a sentence for people.

    context: anything JSON that helps to understand it later (sources read, model, prompt id). Kept until pruned.
    trace_context: a W3C trace carrier such as {"traceparent": "..."}.
    The first intent committed for (run, step) stays; a later purpose or context does not change it.
    """

    run: str
    step: str
    purpose: str
    context: Mapping[str, object] = field(default_factory=dict[str, object])
    trace_context: Mapping[str, str] = field(default_factory=dict[str, str])

    def faults(self) -> list[Fault]:
        """All that is wrong with this intent, each with its path."""
        faults = [
            Fault(f"intent.{name}", wrong)
            for name, value in (("run", self.run), ("step", self.step))
            if (wrong := wrong_label(value))
        ]
        faults += _purpose_faults(self.purpose)
        faults += _object_faults("intent.context", self.context, CONTEXT_DEPTH)
        faults += _object_faults("intent.trace_context", self.trace_context, 1)
        return faults

    def id(self, tenant: str, principal: str) -> UUID:
        """The intent's UUID (version 8), derived from its identity: known without a look-up, equal for all writers."""
        identity = json.dumps([tenant, principal, self.run, self.step], ensure_ascii=False).encode()
        digest = bytearray(hashlib.sha256(identity).digest()[:16])
        digest[6] = digest[6] & 0x0F | 0x80
        digest[8] = digest[8] & 0x3F | 0x80
        return UUID(bytes=bytes(digest))

    @property
    def context_json(self) -> str | None:
        return _json(dict(self.context)) if self.context else None

    @property
    def trace_context_json(self) -> str | None:
        return _json(dict(self.trace_context)) if self.trace_context else None


def derived_operation_id(intent: Intent, kind: str) -> str:
    """The operation_id of a caller who names none: the same for the same (run, step, kind).

    A hash, because joining the three with any separator lets two different triples meet.
    """
    identity = json.dumps([intent.run, intent.step, kind], ensure_ascii=False).encode()
    return f"{kind}:{hashlib.sha256(identity).hexdigest()[:32]}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _purpose_faults(purpose: object) -> list[Fault]:
    if not isinstance(purpose, str):
        return [Fault("intent.purpose", f"must be a string, got {type(purpose).__name__}")]
    if not purpose.strip():
        return [Fault("intent.purpose", "is blank; say in one sentence what this write is for")]
    if len(purpose) > PURPOSE_LENGTH:
        return [
            Fault("intent.purpose", f"has {len(purpose)} characters; at most {PURPOSE_LENGTH} are allowed")
        ]
    wrong = wrong_text(purpose)
    return [Fault("intent.purpose", wrong)] if wrong else []


def _object_faults(path: str, value: object, depth: int) -> list[Fault]:
    """What is wrong with a context; its size can be told only of one that is JSON."""
    if not isinstance(value, Mapping):
        return [Fault(path, f"must be an object, got {type(value).__name__}")]
    faults = _json_faults(path, dict(value), depth)  # pyright: ignore[reportUnknownArgumentType] (any mapping)
    if not faults and (size := len(_json(dict(value)).encode())) > CONTEXT_BYTES:  # pyright: ignore[reportUnknownArgumentType] (JSON by now)
        faults.append(Fault(path, f"is {size:,} bytes of JSON; at most {CONTEXT_BYTES:,} are allowed"))
    return faults


def _json_faults(path: str, value: object, depth: int) -> list[Fault]:
    """Everything in a JSON value that PostgreSQL or JSON itself cannot hold."""
    match value:
        case None | bool():
            return []
        case int():
            fits = value.bit_length() <= NUMBER_BITS
            return [] if fits else [Fault(path, f"is a number of more than {NUMBER_BITS:,} bits")]
        case float():
            finite = value == value and value not in (float("inf"), float("-inf"))
            return [] if finite else [Fault(path, f"{value} is not a JSON number")]
        case str():
            wrong = wrong_text(value)
            return [Fault(path, wrong)] if wrong else []
        case list() | tuple() | dict() if depth == 0:
            return [
                Fault(
                    path,
                    f"is nested too deeply; a context has at most {CONTEXT_DEPTH} levels, a trace context one",
                )
            ]
        case list() | tuple():
            items: list[object] = list(value)  # pyright: ignore[reportUnknownArgumentType] (any JSON value)
            return [
                fault
                for n, item in enumerate(items)
                for fault in _json_faults(f"{path}[{n}]", item, depth - 1)
            ]
        case dict():
            members: dict[object, object] = dict(value)  # pyright: ignore[reportUnknownArgumentType] (any JSON value)
            return [
                fault for key, item in members.items() for fault in _member_faults(path, key, item, depth)
            ]
        case _:
            return [Fault(path, f"{type(value).__name__} is not a JSON value")]


def _member_faults(path: str, key: object, value: object, depth: int) -> list[Fault]:
    if not isinstance(key, str):
        return [Fault(path, f"key {key!r} must be a string")]
    wrong = wrong_text(key)
    return [Fault(path, f"key {key!r} {wrong}")] if wrong else _json_faults(f"{path}.{key}", value, depth - 1)
