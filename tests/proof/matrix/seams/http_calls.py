"""The seam at the receiver: the HTTP client's transport, one request and its whole reply."""

import re
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2

from tests.proof.matrix.moments import Seam
from tests.proof.matrix.seams.trap import Trap

# A method of `Destination`, and the request it is.
REQUESTS: Final = {
    "send": ("POST", re.compile("/v1/notes:batch")),
    "status": ("POST", re.compile("/v1/operations:status")),
    "seal": ("POST", re.compile("/v1/operations:seal")),
    "capabilities": ("GET", re.compile("/v1/capabilities")),
    "read_note": ("GET", re.compile("/v1/notes/[^/]+")),
    "list_folders": ("GET", re.compile("/v1/folders")),
}


def install(trap: Trap) -> None:
    """Watch every request of this process."""
    transports: Any = httpx2.AsyncHTTPTransport
    ask = transports.handle_async_request

    async def handle(transport: httpx2.AsyncHTTPTransport, request: httpx2.Request) -> httpx2.Response:
        name = _name(request)
        trap.before(Seam.HTTP, name)
        response = await ask(transport, request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Whole(response.stream, trap, name)
        return response

    transports.handle_async_request = handle


class _Whole(httpx2.AsyncByteStream):
    """Hands nothing on before the last byte is there: a reply that is lost was executed whole, all the same."""

    def __init__(self, stream: httpx2.AsyncByteStream, trap: Trap, name: str) -> None:
        self._stream = stream
        self._trap = trap
        self._name = name

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = [part async for part in self._stream]
        self._trap.after(Seam.HTTP, self._name)
        # The client closes the connection itself when it is told.
        if self._trap.lost(Seam.HTTP, self._name, lambda: None):
            raise httpx2.ReadError("connection reset by peer")
        for part in parts:
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


def _name(request: httpx2.Request) -> str:
    return next(
        (
            name
            for name, (method, path) in REQUESTS.items()
            if request.method == method and path.fullmatch(request.url.path)
        ),
        "",
    )
