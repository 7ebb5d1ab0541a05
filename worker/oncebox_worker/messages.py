"""The message that travels through the broker: ids only, a hint to look. The outbox is the truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, TypeAdapter

DELIVER_TASK: Final = "oncebox.deliver"


class Chunk(BaseModel):
    """Operations of one destination to look at together.

    dispatched_at: the stamp their entries carry; with it the relay can take exactly this stamp back.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    v: Literal[1] = 1
    destination: str
    ids: tuple[UUID, ...]
    dispatched_at: datetime

    def as_message(self) -> dict[str, object]:
        """The message's JSON object."""
        return self.model_dump(mode="json")


_TASK_BODY: Final = TypeAdapter(tuple[tuple[Chunk], dict[str, object], dict[str, object]])


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """Whether the broker took responsibility for a chunk; `reason` says why not."""

    chunk: Chunk
    accepted: bool
    reason: str = ""


def accepted_ids(results: Sequence[ChunkResult]) -> int:
    """How many operations the broker took over."""
    return sum(len(result.chunk.ids) for result in results if result.accepted)


def from_task_body(body: object) -> Chunk:
    """The chunk in a task message's body `[args, kwargs, embed]`. Raises ValueError when there is none."""
    (chunk,), _, _ = _TASK_BODY.validate_python(body)
    return chunk
