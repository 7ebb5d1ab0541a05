"""The client of our note service: one call, one total deadline, one Answer for each operation."""

import asyncio
import random as stdlib_random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final
from uuid import UUID

from oncebox_destinations import matching, request_bodies, retry_after
from oncebox_destinations.exchange import Exchanges, Reply
from oncebox_destinations.note_reader import NoteReader
from oncebox_destinations.protocol import StoredNote
from oncebox_destinations.reads import TRIES
from oncebox_destinations.reasons import Reason
from oncebox_destinations.request_bodies import BatchLimits
from oncebox_destinations.settings import NoteServiceSettings
from oncebox_destinations.transport_failures import Failure
from oncebox_models.calls import Capabilities, Outgoing
from oncebox_models.outcomes import Answer, Outcome
from oncebox_models.schedule import Random, RetrySchedule
from oncebox_models.states import CallKind

_JSON: Final = {"Content-Type": "application/json"}
_TURNED_AWAY: Final = frozenset({401, 429})
_SHORTEST_SECRET: Final = 16
"""A token of fewer characters may stand anywhere by chance."""


class NoteService:
    """A Destination. Belongs to the event loop that first uses it; safe for many calls at once.

    seen: what the receiver said of itself when last asked; its batch limits hold until it is asked again.
    schedule, tries, sleep, random: how `capabilities`, `read_note` and `list_folders` are retried. Calls
        never are.
    """

    def __init__(
        self,
        settings: NoteServiceSettings,
        *,
        seen: Capabilities | None = None,
        schedule: RetrySchedule | None = None,
        tries: int = TRIES,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Random = stdlib_random.random,
    ) -> None:
        self._exchanges = Exchanges(settings)
        self._token = settings.token.get_secret_value().encode()
        self._limits = BatchLimits() if seen is None else _limits(seen)
        self._reader = NoteReader(
            self._exchanges, schedule=schedule or RetrySchedule(), tries=tries, sleep=sleep, random=random
        )

    async def send(self, call_id: UUID, operations: Sequence[Outgoing]) -> Mapping[UUID, Answer]:
        """Ask for the writes, as one batch or as few as the receiver's limits allow."""
        item = partial(request_bodies.send_item, call_id)
        return await self._call(CallKind.SEND, "/v1/notes:batch", "items", call_id, operations, item)

    async def status(self, call_id: UUID, operations: Sequence[Outgoing]) -> Mapping[UUID, Answer]:
        """Ask what became of the keys."""
        item = request_bodies.status_item
        return await self._call(
            CallKind.STATUS, "/v1/operations:status", "operations", call_id, operations, item
        )

    async def seal(self, call_id: UUID, operations: Sequence[Outgoing]) -> Mapping[UUID, Answer]:
        """Ask that the keys never be executed from now on."""
        item = request_bodies.seal_item
        return await self._call(CallKind.SEAL, "/v1/operations:seal", "items", call_id, operations, item)

    async def capabilities(self) -> Capabilities:
        """What the receiver says of itself. Its batch limits hold for this client's calls from now on."""
        said = await self._reader.capabilities()
        self._limits = _limits(said)
        return said

    async def read_note(
        self, note_id: str, *, on_behalf_of: str | None, version: int | None = None
    ) -> StoredNote | None:
        """A note, or one version of it; None when there is none that this principal may read."""
        return await self._reader.note(note_id, on_behalf_of=on_behalf_of, version=version)

    async def list_folders(self, *, on_behalf_of: str | None) -> Sequence[str]:
        """Paths of the folders the principal may write to."""
        return await self._reader.folders(on_behalf_of=on_behalf_of)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._exchanges.aclose()

    async def _call(
        self,
        kind: CallKind,
        path: str,
        member: str,
        call_id: UUID,
        operations: Sequence[Outgoing],
        item: Callable[[Outgoing], bytes],
    ) -> Mapping[UUID, Answer]:
        _check_distinct(operations)
        headers = _JSON | {"Call-Id": str(call_id)}
        until = self._exchanges.until()
        answers: dict[UUID, Answer] = {}
        ended: Answer | None = None
        for part in request_bodies.parts(member, operations, item, self._limits):
            if ended is None:
                body = request_bodies.body(member, part.items)
                result = await self._exchanges.ask("POST", path, headers, body, until=until)
                after_s = _retry_after(result)
                told = _without(self._token, result)
                answers |= matching.answers(kind, part.operations, told, after_s=after_s)
                if _ends_the_call(result):
                    ended = Answer(Outcome.NOT_SENT, Reason.EARLIER_PART_FAILED, retry_after_s=after_s)
            else:
                answers |= dict.fromkeys((operation.id for operation in part.operations), ended)
        return answers


def _without(token: bytes, result: Reply | Failure) -> Reply | Failure:
    """The result as it may be kept: a receiver may repeat what it was sent, and its words are shown to people."""
    if isinstance(result, Failure) or len(token) < _SHORTEST_SECRET:
        return result
    return replace(result, body=result.body.replace(token, b"(our token)"))


def _check_distinct(operations: Sequence[Outgoing]) -> None:
    if len({operation.id for operation in operations}) != len(operations):
        raise ValueError("a call must not hold the same operation twice")


def _ends_the_call(result: Reply | Failure) -> bool:
    """Whether the parts of a call that are still to come would fare no better."""
    return isinstance(result, Failure) or result.status >= 500


def _retry_after(result: Reply | Failure) -> float | None:
    if isinstance(result, Failure):
        return None
    return retry_after.from_headers(result.headers, datetime.now(UTC))


def _limits(said: Capabilities) -> BatchLimits:
    return BatchLimits(said.batch_items, said.batch_bytes)
