"""What is handed from the outbox to a destination: one operation of a call, and what a receiver can do."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One operation as a call carries it. `arguments` are the frozen bytes, sent as they are."""

    id: UUID
    operation_id: str
    tenant: str
    principal: str
    kind: str
    arguments: str
    args_hash: str
    deadline: datetime


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a receiver says of itself. Durations are in seconds, sizes in bytes."""

    receiver: str
    batch_items: int
    batch_bytes: int
    admission_window_s: float
    request_limit_s: float
    tombstone_retention_s: float
    server_time: datetime
