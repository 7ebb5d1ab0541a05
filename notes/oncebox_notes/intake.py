"""From a parsed request to operations, with every fault of an item reported at that item."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

from oncebox_notes import arguments, identity, problems, syntax
from oncebox_notes.identity import Caller, Identity
from oncebox_notes.operations import Key, Operation, SealRequest
from oncebox_notes.problems import Fault, Problem, RefusalError
from oncebox_notes.settings import Settings
from oncebox_notes.strict_json import Json
from oncebox_notes.transport import CALL_ID_LIMIT

_ECHO_LIMIT: Final = 256
_BATCH_FIELDS: Final = ("operation_id", "deadline", "kind", "arguments")
_BATCH_OPTIONAL: Final = ("call_id", "on_behalf_of")
_HASH_DIGITS: Final = frozenset("0123456789abcdef")

Asked = TypeVar("Asked", Operation, SealRequest)
Wanted = TypeVar("Wanted")


@dataclass(frozen=True, slots=True)
class Intake:
    """What the reading of a request depends on; `now` is the database's clock at authentication."""

    caller: Caller
    now: datetime
    settings: Settings
    on_behalf_of: str | None
    call_id: str | None
    query: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Item(Generic[Wanted]):
    """One place of a list: the id to answer with, and what was asked or why it cannot be."""

    operation_id: str | None
    wanted: Wanted | Problem


def items(body: Json, name: str, limit: int) -> list[Json]:
    """The list of a request for many; raises `RefusalError` when the request as a whole cannot be read."""
    faults: list[Fault] = []
    found = arguments.closed_object(body, (name,), (), "the body", faults)
    if faults:
        raise RefusalError(problems.from_faults(faults))
    listed = found.get(name)
    if not isinstance(listed, list) or not listed:
        fault = Fault("invalid_argument", name, "must be a list of at least one item")
        raise RefusalError(problems.from_faults([fault]))
    if len(listed) > limit:
        raise RefusalError(
            problems.from_faults([Fault("too_large", name, f"has {len(listed)} items; the limit is {limit}")])
        )
    return listed


def batch(context: Intake, values: Sequence[Json]) -> list[Item[Operation]]:
    """The items of a batch in their order; a key that occurred before in it is a problem."""
    return _distinct([Item(echo(value), _batch_item(context, value)) for value in values])


def seals(context: Intake, values: Sequence[Json]) -> list[Item[SealRequest]]:
    """The items of a request to seal in their order; a key that occurred before in it is a problem."""
    return _distinct([Item(echo(value), _seal_item(context, value)) for value in values])


def status_keys(context: Intake, values: Sequence[Json]) -> list[Item[Key]]:
    """The keys that are asked for, in their order; one may occur twice."""
    return [Item(echo(value), _status_item(context, value)) for value in values]


def echo(value: Json) -> str | None:
    """The operation id of an item as it was sent, if it can be sent back at all."""
    sent = value.get("operation_id") if isinstance(value, dict) else None
    if not isinstance(sent, str) or len(sent) > _ECHO_LIMIT or not sent.isprintable():
        return None
    return sent


def key_fault(value: Json, path: str) -> Fault | None:
    """What is wrong with a key that stands in a path or an item."""
    if value is None:
        return Fault("idempotency_key_missing", path, f"is required: {syntax.KEY_RULE}")
    if not isinstance(value, str) or not syntax.is_key(value):
        return Fault("idempotency_key_invalid", path, f"must be {syntax.KEY_RULE}")
    return None


def owner(context: Intake, named: Json, path: str) -> Identity | Problem | Fault:
    """For whom an item or a request is."""
    if named is not None and not isinstance(named, str):
        return Fault("invalid_argument", path, "must be a string: tenant/principal")
    try:
        return context.caller.acting_for(named if named is not None else context.on_behalf_of)
    except identity.NotActingError as error:
        return Fault("invalid_argument", path, str(error))
    except identity.NotPermittedError as error:
        return Problem("unauthenticated", f"Nothing was executed: {error}. Use a token of its tenant.")


def _distinct(found: list[Item[Asked]]) -> list[Item[Asked]]:
    seen: set[Key] = set()
    distinct: list[Item[Asked]] = []
    for item in found:
        wanted: Asked | Problem = item.wanted
        if not isinstance(wanted, Problem):
            key = wanted.key
            if key in seen:
                fault = Fault("invalid_argument", "operation_id", "occurs earlier in this request")
                wanted = Problem("invalid_argument", "Send each key once in a request.", errors=[fault])
            seen.add(key)
        distinct.append(Item(item.operation_id, wanted))
    return distinct


def _batch_item(context: Intake, value: Json) -> Operation | Problem:
    faults: list[Fault] = []
    found = arguments.closed_object(value, _BATCH_FIELDS, _BATCH_OPTIONAL, "the item", faults)
    if not isinstance(value, dict):
        return problems.from_faults(faults)
    acting = owner(context, found.get("on_behalf_of"), "on_behalf_of")
    if isinstance(acting, Problem):
        return acting
    _check_identity(found, acting, faults)
    deadline = _deadline(context, found.get("deadline"), faults)
    call_id = _call_id(found.get("call_id"), context.call_id, faults)
    wanted = _arguments(context, found, faults)
    key = found.get("operation_id")
    if faults or deadline is None or wanted is None or isinstance(acting, Fault) or not isinstance(key, str):
        return problems.from_faults(faults)
    return Operation(Key(acting, key), call_id, deadline, wanted)


def _seal_item(context: Intake, value: Json) -> SealRequest | Problem:
    faults: list[Fault] = []
    found = arguments.closed_object(
        value, ("operation_id", "deadline"), ("on_behalf_of", "args_hash"), "the item", faults
    )
    if not isinstance(value, dict):
        return problems.from_faults(faults)
    acting = owner(context, found.get("on_behalf_of"), "on_behalf_of")
    if isinstance(acting, Problem):
        return acting
    _check_identity(found, acting, faults)
    deadline = _deadline(context, found.get("deadline"), faults)
    args_hash = known_hash(found.get("args_hash"), faults)
    key = found.get("operation_id")
    if faults or deadline is None or isinstance(acting, Fault) or not isinstance(key, str):
        return problems.from_faults(faults)
    return SealRequest(Key(acting, key), deadline, args_hash)


def _status_item(context: Intake, value: Json) -> Key | Problem:
    faults: list[Fault] = []
    found = arguments.closed_object(value, ("operation_id",), ("on_behalf_of",), "the item", faults)
    if not isinstance(value, dict):
        return problems.from_faults(faults)
    acting = owner(context, found.get("on_behalf_of"), "on_behalf_of")
    if isinstance(acting, Problem):
        return acting
    _check_identity(found, acting, faults)
    key = found.get("operation_id")
    if faults or isinstance(acting, Fault) or not isinstance(key, str):
        return problems.from_faults(faults)
    return Key(acting, key)


def _check_identity(found: Mapping[str, Json], acting: Identity | Fault, faults: list[Fault]) -> None:
    wrong = key_fault(found.get("operation_id"), "operation_id")
    if wrong:
        faults.append(wrong)
    if isinstance(acting, Fault):
        faults.append(acting)


def _deadline(context: Intake, value: Json, faults: list[Fault]) -> datetime | None:
    if value is None:
        faults.append(Fault("deadline_missing", "deadline", "is required: an RFC 3339 time"))
        return None
    checked = syntax.check_deadline(
        value if isinstance(value, str) else "",
        "deadline",
        context.now,
        context.settings.admission_window_seconds,
    )
    if isinstance(checked, Fault):
        faults.append(checked)
        return None
    return checked


def _call_id(value: Json, of_request: str | None, faults: list[Fault]) -> str | None:
    if value is None:
        return of_request
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= CALL_ID_LIMIT
        or not value.isprintable()
        or not value.isascii()
    ):
        faults.append(
            Fault("invalid_argument", "call_id", f"must be 1 to {CALL_ID_LIMIT} printable ASCII characters")
        )
        return None
    return value


def known_hash(value: Json, faults: list[Fault]) -> str | None:
    """The optional hash in a request to seal."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) != 64 or not _HASH_DIGITS.issuperset(value):
        faults.append(Fault("invalid_argument", "args_hash", "must be 64 lower-case hexadecimal digits"))
        return None
    return value


def _arguments(
    context: Intake, found: Mapping[str, Json], faults: list[Fault]
) -> arguments.Create | arguments.Revise | None:
    kind: Json = found.get("kind")
    if not arguments.is_kind(kind):
        faults.append(Fault("invalid_argument", "kind", f"must be one of {', '.join(arguments.KINDS)}"))
        return None
    limit = context.settings.note_max_bytes
    return arguments.parse(kind, found.get("arguments"), limit, "arguments", faults)
