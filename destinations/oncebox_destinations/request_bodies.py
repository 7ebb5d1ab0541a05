"""The bodies of our requests. Frozen arguments are joined in as text, never decoded and encoded again."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from oncebox_models.calls import Outgoing


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The most that one request may carry: operations, and bytes of its whole body."""

    items: int = 500
    bytes: int = 8 * 1024 * 1024


@dataclass(slots=True)
class Part:
    """One request's share of a call. No key is in it twice: its answers can be matched by key alone."""

    operations: list[Outgoing] = field(default_factory=list[Outgoing])
    items: list[bytes] = field(default_factory=list[bytes])
    keys: set[str] = field(default_factory=set[str])
    size: int = 0

    def has_room_for(self, operation: Outgoing, item: bytes, limits: BatchLimits) -> bool:
        """An empty part takes anything: one operation over the limit is the receiver's to refuse."""
        if not self.items:
            return True
        return (
            operation.operation_id not in self.keys
            and len(self.items) < limits.items
            and self.size + len(item) + 1 <= limits.bytes
        )

    def add(self, operation: Outgoing, item: bytes) -> None:
        self.operations.append(operation)
        self.items.append(item)
        self.keys.add(operation.operation_id)
        self.size += len(item) + 1


def moment(value: datetime) -> str:
    """RFC 3339 in UTC with microseconds: the same at every attempt. Raises ValueError without a zone."""
    if value.tzinfo is None:
        raise ValueError(f"a deadline needs a time zone, got {value!r}")
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def on_behalf_of(operation: Outgoing) -> str:
    """The principal an operation belongs to, as the wire writes it."""
    return f"{operation.tenant}/{operation.principal}"


def send_item(call_id: UUID, operation: Outgoing) -> bytes:
    """One operation of a batch."""
    head = _object(
        {
            "operation_id": operation.operation_id,
            "call_id": str(call_id),
            "deadline": moment(operation.deadline),
            "on_behalf_of": on_behalf_of(operation),
            "kind": operation.kind,
        }
    )
    return f'{head[:-1]},"arguments":{operation.arguments}}}'.encode()


def status_item(operation: Outgoing) -> bytes:
    """One key to ask about."""
    return _object({"operation_id": operation.operation_id, "on_behalf_of": on_behalf_of(operation)}).encode()


def seal_item(operation: Outgoing) -> bytes:
    """One key to seal. The hash tells the receiver whose arguments we gave up on."""
    return _object(
        {
            "operation_id": operation.operation_id,
            "on_behalf_of": on_behalf_of(operation),
            "deadline": moment(operation.deadline),
            "args_hash": operation.args_hash,
        }
    ).encode()


def body(member: str, items: Sequence[bytes]) -> bytes:
    """The object whose one member is the list of items."""
    return _opening(member) + b",".join(items) + b"]}"


def parts(
    member: str, operations: Sequence[Outgoing], item: Callable[[Outgoing], bytes], limits: BatchLimits
) -> list[Part]:
    """Share operations out over as few requests as the limits allow. First fit: order means nothing here."""
    shares: list[Part] = []
    for operation in operations:
        encoded = item(operation)
        room = next((part for part in shares if part.has_room_for(operation, encoded, limits)), None)
        if room is None:
            # The closing bracket and brace take the two bytes; each item's comma is counted with it.
            room = Part(size=len(_opening(member)) + 1)
            shares.append(room)
        room.add(operation, encoded)
    return shares


def _opening(member: str) -> bytes:
    return f'{{"{member}":['.encode()


def _object(members: dict[str, str]) -> str:
    return json.dumps(members, ensure_ascii=False, separators=(",", ":"))
