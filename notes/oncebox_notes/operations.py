"""What the service works with between the wire and SQL: operations, records and outcomes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from oncebox_notes.arguments import Create, Revise
from oncebox_notes.identity import Identity
from oncebox_notes.problems import Problem


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key in its scope: the same text under another principal is another key."""

    owner: Identity
    value: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One write that is wanted once. `deadline` is compared with the database's clock only."""

    key: Key
    call_id: str | None
    deadline: datetime
    wanted: Create | Revise


@dataclass(frozen=True, slots=True)
class SealRequest:
    """A key that is never to be executed; `args_hash` is kept with the tombstone when it is known."""

    key: Key
    deadline: datetime
    args_hash: str | None


@dataclass(frozen=True, slots=True)
class NoteRef:
    """What a receipt says about a note: its identity and place, none of its text."""

    id: UUID
    folder: str
    version: int
    etag: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Record:
    """The one row of a key: completed (then `note` is there) or sealed. Never changed back."""

    state: Literal["completed", "sealed"]
    args_hash: str | None
    note: NoteRef | None


@dataclass(frozen=True, slots=True)
class Completed:
    """The note exists; `replayed` says that an earlier request made it."""

    key: Key
    args_hash: str
    note: NoteRef
    replayed: bool

    @property
    def status(self) -> int:
        """A first version was created, a later one replaced it; the same on every replay."""
        return 201 if self.note.version == 1 else 200


Outcome = Completed | Problem


@dataclass(frozen=True, slots=True)
class KeyState:
    """What is known of a key at `as_of` by the database's clock."""

    key: Key
    state: Literal["completed", "sealed", "in_progress", "not_found"]
    as_of: datetime
    record: Record | None


def key_columns(keys: Sequence[Key]) -> dict[str, list[str]]:
    """The parameters of a statement over keys."""
    return {
        "tenants": [key.owner.tenant for key in keys],
        "principals": [key.owner.principal for key in keys],
        "keys": [key.value for key in keys],
    }


def etag(version: int, args_hash: str) -> str:
    """The tag of a version, without quotes: no two versions of a note share one."""
    return f"{version}-{args_hash[:16]}"
