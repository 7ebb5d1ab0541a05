"""What the endpoints share: the pool, the settings, who is calling, and work that a disconnect cannot stop."""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

from starlette.requests import Request

from oncebox_notes import database, identity, problems, statements, transport
from oncebox_notes.access_log import Entry
from oncebox_notes.database import Pool, Stopwatch, TimeBudget
from oncebox_notes.identity import Caller, Identity
from oncebox_notes.intake import Intake
from oncebox_notes.metrics import Metrics
from oncebox_notes.problems import Fault, Problem, RefusalError
from oncebox_notes.settings import Settings
from oncebox_notes.strict_json import Json

T = TypeVar("T")

_NOBODY: Final = bytes(32)


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(slots=True)
class RateLimit:
    """Operations a second for each token; the burst is a second's worth, at least one full batch."""

    rate: float
    burst: float
    _buckets: dict[str, _Bucket] = field(default_factory=dict[str, _Bucket])

    def take(self, token_id: str, operations: int, now: float) -> float:
        """Takes the operations, or says after how many seconds they would be free (0: taken)."""
        bucket = self._buckets.setdefault(token_id, _Bucket(self.burst, now))
        bucket.tokens = min(self.burst, bucket.tokens + (now - bucket.at) * self.rate)
        bucket.at = now
        if bucket.tokens >= operations:
            bucket.tokens -= operations
            return 0.0
        return (operations - bucket.tokens) / self.rate


@dataclass(slots=True)
class Service:
    """One running note service."""

    settings: Settings
    pool: Pool
    metrics: Metrics
    _limit: RateLimit | None = field(init=False)
    _running: set[asyncio.Task[Any]] = field(init=False, default_factory=set[asyncio.Task[Any]])

    def __post_init__(self) -> None:
        rate = self.settings.rate_limit_per_token
        self._limit = RateLimit(rate, max(rate, self.settings.batch_max_items)) if rate else None

    def watch(self) -> Stopwatch:
        """Started when a request is admitted."""
        return Stopwatch(TimeBudget.within(self.settings.request_limit_seconds))

    async def authenticate(self, request: Request, known_query: Sequence[str] = ()) -> Intake:
        """Who calls, by the token alone; raises `RefusalError`. Looked up each time: a revocation counts at once.

        `known_query` are the names that the endpoint's query may have; what else stands there is refused, and not
        ignored: a sender that writes `?dry_run=1` must not make a note.
        """
        header = transport.single_header(request, "authorization")
        scheme, _, token = header.partition(" ") if isinstance(header, str) else ("", "", "")
        parts = identity.split_token(token.strip()) if scheme.lower() == "bearer" else None
        if parts is None:
            raise RefusalError(
                Problem("unauthenticated", "Send exactly one header: Authorization: Bearer TOKEN.")
            )
        token_id, secret = parts
        rows = await database.fetch(self.pool, statements.AUTHENTICATE, {"id": token_id})
        stored = rows[0][4] if rows else _NOBODY
        if not identity.matches(secret, stored) or not rows or not rows[0][5]:
            raise RefusalError(
                Problem("unauthenticated", "The token is unknown or revoked: use a valid one.")
            )
        tenant, principal, delegate, tenants, _, _, now = rows[0]
        caller = Caller(token_id, Identity(tenant, principal), delegate, frozenset(tenants))
        entry = entry_of(request)
        entry.token_id, entry.call_id = token_id, transport.call_id(request)
        entry.principal = None if delegate else str(caller.own)
        return self._intake(request, caller, now, known_query)

    def _intake(self, request: Request, caller: Caller, now: datetime, known_query: Sequence[str]) -> Intake:
        named = transport.single_header(request, "on-behalf-of")
        if isinstance(named, Fault):
            raise RefusalError(problems.from_faults([named]))
        query = transport.query(request, known_query)
        return Intake(caller, now, self.settings, named, transport.call_id(request), query)

    def admit(self, caller: Caller, operations: int) -> None:
        """Takes from the token's rate; raises `RefusalError` with the time after which it would fit."""
        wait = self._limit.take(caller.token_id, operations, time.monotonic()) if self._limit else 0.0
        if wait > 0:
            detail = "Nothing was executed: this token's rate is used up. Send the same request after the given time."
            raise RefusalError(Problem("rate_limited", detail, retry_after=int(wait) + 1))

    async def read_json(self, request: Request) -> Json:
        seconds = self.settings.request_limit_seconds / 3
        return await transport.read_json(request, self.settings.body_max_bytes, seconds)

    async def unbroken(self, work: Coroutine[Any, Any, T]) -> T:
        """Awaits work that goes on when the one who waits is cancelled: a transaction ends as one whole."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def drain(self) -> None:
        """Waits for the work that nobody waits for any more, within the limit of a request."""
        if self._running:
            await asyncio.wait(set(self._running), timeout=self.settings.request_limit_seconds)


def of(request: Request) -> Service:
    """The service that this application runs."""
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


def entry_of(request: Request) -> Entry:
    """The request's line in the access log, while it is being collected."""
    entry = request.scope["state"]["entry"]
    assert isinstance(entry, Entry)
    return entry
