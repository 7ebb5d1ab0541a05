"""One JSON line a request, written when it ends, however it ends. No token, no text, no whole key."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oncebox_notes import answers, problems
from oncebox_notes.metrics import Metrics
from oncebox_notes.operations import Key
from oncebox_notes.syntax import format_moment

_log = structlog.stdlib.get_logger(__name__)

CLIENT_GONE: Final = 499
"""The status of a request whose client did not wait for the answer."""

_PREFIX: Final = 8
_LISTED_KEYS: Final = 20


@dataclass(slots=True)
class Entry:
    """What the handler of a request adds to its line."""

    operations: int | None = None
    keys: list[str] = field(default_factory=list[str])
    call_id: str | None = None
    principal: str | None = None
    token_id: str | None = None

    def about(self, keys: Sequence[Key], count: int) -> None:
        """The keys of the request, cut to their first characters; `count` is the number of its items."""
        self.operations = count
        self.keys = [key.value[:_PREFIX] for key in keys] if count <= _LISTED_KEYS else []


class AccessLog:
    """The outermost layer: it sees every answer, also those that nobody handled."""

    def __init__(self, app: ASGIApp, stream: TextIO, metrics: Metrics) -> None:
        self._app: Final = app
        self._stream: Final = stream
        self._metrics: Final = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        entry = Entry()
        scope.setdefault("state", {})["entry"] = entry
        started = time.perf_counter()
        answered: list[int] = []
        gone = False

        async def watch(message: Message) -> None:
            nonlocal gone
            if message["type"] == "http.response.start":
                answered.append(message["status"])
                gone = await _client_gone(receive)
            await send(message)

        status = CLIENT_GONE
        try:
            await self._app(scope, receive, watch)
        except Exception as error:
            # Whatever nobody handled: the sender gets a problem like any other, and the log has the reason.
            _log.error("request_failed", method=scope["method"], path=scope["path"][:64], exc_info=error)
            if not answered:
                await answers.problem(problems.internal())(scope, receive, watch)
        finally:
            if answered and not gone:
                status = answered[0]
            self._write(scope, entry, status, answered, time.perf_counter() - started)

    def _write(self, scope: Scope, entry: Entry, status: int, answered: list[int], seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        line: dict[str, Any] = {
            "ts": format_moment(datetime.now(UTC)),
            "event": "request",
            "method": scope["method"],
            "route": route,
            "status": status,
            "duration_ms": round(seconds * 1000, 3),
            "operations": entry.operations,
            "keys": entry.keys,
            "call_id": entry.call_id,
            "principal": entry.principal,
            "token_id": entry.token_id,
        }
        if status == CLIENT_GONE and answered:
            line["answer"] = answered[0]
        self._stream.write(json.dumps(line, separators=(",", ":")) + "\n")
        self._stream.flush()
        self._metrics.request(scope["method"], route, status, seconds)


async def _client_gone(receive: Receive) -> bool:
    """Whether the connection is closed already; asked just before the answer, without waiting."""
    asking = asyncio.ensure_future(receive())
    await asyncio.sleep(0)
    if asking.done():
        return asking.result()["type"] == "http.disconnect"
    asking.cancel()
    return False
