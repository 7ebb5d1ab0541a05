"""Reads of the note service: GET only, retried on the one schedule, bounded."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar
from urllib.parse import quote

from oncebox_destinations import note_documents, retry_after
from oncebox_destinations.exchange import Exchanges, Reply
from oncebox_destinations.protocol import StoredNote
from oncebox_destinations.reads import ReadRefused, TemporaryFailure, read_with_retries
from oncebox_destinations.received_json import Garbage, Object, parse_object
from oncebox_destinations.transport_failures import Failure
from oncebox_models.calls import Capabilities
from oncebox_models.schedule import Random, RetrySchedule

_SHOWN: Final = 300
"""How much of a receiver's explanation an error message repeats, in characters."""

Value = TypeVar("Value")


class NoteReader:
    """Documents of one note service. Every method raises ReceiverUnreachable or ReadRefused."""

    def __init__(
        self,
        exchanges: Exchanges,
        *,
        schedule: RetrySchedule,
        tries: int,
        sleep: Callable[[float], Awaitable[None]],
        random: Random,
    ) -> None:
        self._exchanges = exchanges
        self._schedule = schedule
        self._tries = tries
        self._sleep = sleep
        self._random = random

    async def capabilities(self) -> Capabilities:
        """What the receiver says of itself."""
        path = "/v1/capabilities"
        return self._read(path, await self._get(path, None), note_documents.capabilities)

    async def note(self, note_id: str, *, on_behalf_of: str | None, version: int | None) -> StoredNote | None:
        """A note, or one version of it; None for a 404 of the receiver's own."""
        path = f"/v1/notes/{quote(note_id, safe='')}"
        if version is not None:
            path = f"{path}?version={version}"
        reply = await self._get(path, on_behalf_of)
        if reply.status == 404 and _problem(reply).get("code") == "note_not_found":
            return None
        return self._read(path, reply, note_documents.stored_note)

    async def folders(self, *, on_behalf_of: str | None) -> Sequence[str]:
        """Paths of the folders the principal may write to."""
        path = "/v1/folders"
        return self._read(path, await self._get(path, on_behalf_of), note_documents.folders)

    async def _get(self, path: str, on_behalf_of: str | None) -> Reply:
        headers = {} if on_behalf_of is None else {"On-Behalf-Of": on_behalf_of}
        return await read_with_retries(
            lambda: self._try(path, headers),
            self._schedule,
            what=f"GET {self._exchanges.url(path)}",
            tries=self._tries,
            sleep=self._sleep,
            random=self._random,
        )

    async def _try(self, path: str, headers: Mapping[str, str]) -> Reply:
        result = await self._exchanges.ask("GET", path, headers, None, until=self._exchanges.until())
        if isinstance(result, Failure):
            raise TemporaryFailure(result.reason)
        if result.status == 429 or result.status >= 500:
            wished = retry_after.from_headers(result.headers, datetime.now(UTC))
            raise TemporaryFailure(f"http_{result.status}", wished)
        return result

    def _read(self, path: str, reply: Reply, read: Callable[[Object], Value]) -> Value:
        what = f"GET {self._exchanges.url(path)}"
        if reply.status != 200:
            raise ReadRefused(f"{what} was answered with {reply.status}{_explanation(reply)}")
        try:
            return read(parse_object(reply.body))
        except Garbage as error:
            raise ReadRefused(
                f"{what} was answered, but not as a note service would ({str(error)[:_SHOWN]}); check the URL"
            ) from error


def _problem(reply: Reply) -> Object:
    try:
        return parse_object(reply.body)
    except Garbage:
        return {}


def _explanation(reply: Reply) -> str:
    problem = _problem(reply)
    code, detail = problem.get("code"), problem.get("detail")
    if not isinstance(code, str) or not isinstance(detail, str):
        return "; check the URL"
    return f" {code[:_SHOWN]}: {detail[:_SHOWN]}"
