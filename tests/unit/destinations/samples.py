"""Operations, receipts and problems to test with, and a note service client with short waits."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID, uuid4

from pydantic import SecretStr

from oncebox_destinations.note_service import NoteService
from oncebox_destinations.settings import NoteServiceSettings
from oncebox_models.calls import Capabilities, Outgoing
from oncebox_models.canonical import args_hash, canonical_arguments

Value = TypeVar("Value")

TOKEN = "secret-token-of-the-worker"
CALL_ID = UUID("0197a000-0000-7000-8000-000000000001")
DEADLINE = datetime(2030, 1, 31, 12, 0, 0, 250_000, tzinfo=UTC)
CAPABILITIES = {
    "receiver": "0197a000-0000-7000-8000-00000000000a",
    "class": "A",
    "batch": {"max_items": 500, "max_bytes": 8_388_608},
    "admission_window_s": 604_800,
    "request_limit_s": 30.0,
    "tombstone_retention_s": 691_200,
    "limits": {},
    "server_time": "2026-01-01T00:00:00.000000Z",
    "version": "0.1.0",
}


def operation(
    key: str = "note-7", *, tenant: str = "demo", principal: str = "researcher", text: str = "…"
) -> Outgoing:
    arguments = canonical_arguments(
        {"folder": "drafts", "title": "Finding", "text": text, "format": "markdown"}
    )
    return Outgoing(
        id=uuid4(),
        operation_id=key,
        tenant=tenant,
        principal=principal,
        kind="note.create",
        arguments=arguments,
        args_hash=args_hash("note.create", arguments),
        deadline=DEADLINE,
    )


def receipt(of: Outgoing, **changes: object) -> dict[str, object]:
    note: dict[str, object] = {
        "id": "5f0c6f0e-0000-4000-8000-000000000007",
        "folder": "drafts",
        "version": 1,
        "etag": f"1-{of.args_hash[:16]}",
        "location": "/v1/notes/5f0c6f0e-0000-4000-8000-000000000007",
        "created_at": "2026-01-01T00:00:00.000000Z",
    }
    return {"operation_id": of.operation_id, "args_hash": of.args_hash, "note": note} | changes


def created(of: Outgoing, *, replayed: bool = False, **changes: object) -> dict[str, object]:
    """A batch item that says the note exists."""
    return {
        "operation_id": of.operation_id,
        "status": 201,
        "replayed": replayed,
        "receipt": receipt(of),
    } | changes


def problem(status: int, code: str, attempt: str = "not_executed", **more: object) -> dict[str, object]:
    return {
        "type": f"urn:oncebox:problem:{code}",
        "title": code,
        "status": status,
        "detail": "what to do next",
        "code": code,
        "attempt": attempt,
        "operation_state": "unknown",
    } | more


def turned_away(of: Outgoing, status: int, body: object) -> dict[str, object]:
    """A batch item with a problem."""
    return {"operation_id": of.operation_id, "status": status, "problem": body}


def settings(
    url: str,
    *,
    call_timeout_s: float = 20.0,
    connect_timeout_s: float | None = None,
    max_connections: int = 20,
    response_bytes: int = 16_000_000,
) -> NoteServiceSettings:
    """Waits are long, so that a busy machine changes no answer; a test that waits for one to end shortens it."""
    return NoteServiceSettings(
        url,
        SecretStr(TOKEN),
        call_timeout_s=call_timeout_s,
        connect_timeout_s=connect_timeout_s or call_timeout_s * 0.9,
        max_connections=max_connections,
        keepalive_s=60.0,
        response_bytes=response_bytes,
    )


def capabilities_seen(items: int = 500, size: int = 8_388_608) -> Capabilities:
    return Capabilities("receiver", items, size, 604_800.0, 30.0, 691_200.0, DEADLINE)


@asynccontextmanager
async def opened(service: NoteService) -> AsyncGenerator[NoteService]:
    try:
        yield service
    finally:
        await service.aclose()


def run(service: Callable[[], NoteService], work: Callable[[NoteService], Awaitable[Value]]) -> Value:
    """Do some work with a fresh client on a fresh event loop, and close it."""

    async def main() -> Value:
        async with opened(service()) as client:
            return await work(client)

    return asyncio.run(main())
