"""One request and its answer, or how it failed: the one place with network I/O and its exceptions."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from typing import Final

import httpx2

from oncebox_destinations.reasons import Reason
from oncebox_destinations.settings import NoteServiceSettings
from oncebox_destinations.transport_failures import Failure, Oversized, Progress, failure

USER_AGENT: Final = f"oncebox/{version('oncebox')}"


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer: its head and every byte of its body. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Exchanges:
    """Requests to one receiver, over kept connections. Belongs to the event loop that first uses it."""

    def __init__(self, settings: NoteServiceSettings) -> None:
        self._settings = settings
        self._client = _client(settings)

    def url(self, path: str) -> str:
        """The URL of a path that begins with a slash."""
        return self._settings.url(path)

    def until(self) -> float:
        """When a call that starts now has to be over, by the running loop's clock."""
        return asyncio.get_running_loop().time() + self._settings.call_timeout_s

    async def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, *, until: float
    ) -> Reply | Failure:
        """Send one request and read its whole answer before `until`. One try, no redirects.

        Raises nothing for what a network or a receiver can do. Cancelling passes through.
        """
        if asyncio.get_running_loop().time() >= until:
            # A timeout in the past would only strike at the first wait, which may come after the first byte.
            return Failure(False, Reason.TIMEOUT)
        progress = Progress()
        request = self._client.build_request(
            method, self.url(path), headers=dict(headers), content=body, extensions={"trace": progress}
        )
        try:
            async with asyncio.timeout_at(until):
                reply = await self._answer(request)
        except (httpx2.TransportError, Oversized, OSError) as error:
            # OSError: asyncio.timeout_at's TimeoutError, and an ssl.SSLError that the client lets through.
            return failure(progress, error)
        if not progress.began:
            # "Not sent" stands on the trace alone: a client that answers without one is of no use.
            raise RuntimeError("the HTTP client gave an answer without tracing that it sent the request")
        return reply

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _answer(self, request: httpx2.Request) -> Reply:
        response = await self._client.send(request, stream=True)
        try:
            body = bytearray()
            # Raw: a decoder would let a small answer grow without limit, and we asked for no encoding.
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > self._settings.response_bytes:
                    raise Oversized
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Reply(response.status_code, headers, bytes(body))
        finally:
            await response.aclose()


def _client(settings: NoteServiceSettings) -> httpx2.AsyncClient:
    """A client that adds nothing of its own: no proxies or credentials from the environment, no cookies."""
    waits = settings.connect_timeout_s
    return httpx2.AsyncClient(
        headers={
            "Authorization": f"Bearer {settings.token.get_secret_value()}",
            "User-Agent": USER_AGENT,
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        },
        # Reading and writing are bounded by the one total deadline.
        timeout=httpx2.Timeout(connect=waits, pool=waits, read=None, write=None),
        limits=httpx2.Limits(
            max_connections=settings.max_connections,
            max_keepalive_connections=settings.max_connections,
            keepalive_expiry=settings.keepalive_s,
        ),
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        follow_redirects=False,
        trust_env=False,
    )
