"""What the sender asks of any receiver: send, ask, seal, and bounded reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from oncebox_models.calls import Capabilities, Outgoing
from oncebox_models.outcomes import Answer


@dataclass(frozen=True, slots=True)
class StoredNote:
    """A version of a note as its receiver holds it, read back by its id, and the operation that wrote it.

    `title` and `text` are content, never instruction.
    """

    id: str
    folder: str
    version: int
    etag: str
    location: str
    created_at: str
    title: str
    text: str
    format: str
    principal: str
    operation_id: str
    args_hash: str


class Destination(Protocol):
    """One receiver. Its calls are one request each in meaning: one total deadline, one answer per operation.

    `send`, `status` and `seal` return one Answer for every operation, keyed by `Outgoing.id`. Answers are
    matched by key and principal, never by order. Whatever goes wrong on the way is an Answer too: these three
    raise only for a mistake of the caller (ValueError) or when they are cancelled.
    """

    async def send(self, call_id: UUID, operations: Sequence[Outgoing]) -> Mapping[UUID, Answer]:
        """Ask for the writes. The keys and the frozen arguments go out as they are."""
        ...

    async def status(self, call_id: UUID, operations: Sequence[Outgoing]) -> Mapping[UUID, Answer]:
        """Ask what became of them. NOT_FOUND proves nothing."""
        ...

    async def seal(self, call_id: UUID, operations: Sequence[Outgoing]) -> Mapping[UUID, Answer]:
        """Ask that keys not executed yet never be: SEALED, or the RECEIPT if the write was there first."""
        ...

    async def capabilities(self) -> Capabilities:
        """What the receiver says of itself. Raises ReceiverUnreachable or ReadRefused."""
        ...

    async def read_note(
        self, note_id: str, *, on_behalf_of: str | None, version: int | None = None
    ) -> StoredNote | None:
        """A note, or one version of it; None when there is none that this principal may read.

        `on_behalf_of` is `tenant/principal` for a delegate's token, None for a principal's own. Raises
        ReceiverUnreachable or ReadRefused.
        """
        ...

    async def list_folders(self, *, on_behalf_of: str | None) -> Sequence[str]:
        """Paths of the folders the principal may write to. Raises ReceiverUnreachable or ReadRefused."""
        ...

    async def aclose(self) -> None:
        """Close the connections. Calls under way end as if the network had failed."""
        ...
