"""HTTP/1.1 messages as raw bytes: read one whole, look into it, pass it on unchanged."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

HasBody = Callable[[str, dict[str, str]], bool]


@dataclass(frozen=True, slots=True)
class Message:
    """``raw`` is what came over the wire; header names are in lower case, the last one of a name counts."""

    start: str
    headers: dict[str, str]
    body: bytes
    raw: bytes = field(repr=False)

    @property
    def closes(self) -> bool:
        """The connection carries nothing after it."""
        return self.headers.get("connection", "").lower() == "close"


async def read_request(reader: asyncio.StreamReader) -> Message | None:
    """The next request of a connection; None when the client closed it between two."""
    try:
        return await _read(reader, has_body=lambda _start, headers: "content-length" in headers)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None


async def read_response(reader: asyncio.StreamReader, *, method: str) -> Message:
    """A whole response to a request of that method; IncompleteReadError when it breaks off."""

    def has_body(start: str, _headers: dict[str, str]) -> bool:
        return method != "HEAD" and start.split(" ")[1] not in ("204", "304")

    return await _read(reader, has_body=has_body)


async def _read(reader: asyncio.StreamReader, *, has_body: HasBody) -> Message:
    head = await reader.readuntil(b"\r\n\r\n")
    start, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    if headers.get("transfer-encoding", "").lower() == "chunked":
        raw, body = await _read_chunks(reader)
    elif not has_body(start, headers):
        raw = body = b""
    elif "content-length" in headers:
        raw = body = await reader.readexactly(int(headers["content-length"]))
    else:
        raw = body = await reader.read()
        headers["connection"] = "close"
    return Message(start, headers, body, head + raw)


async def _read_chunks(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    raw = body = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        if size == 0:
            # Trailers, if any, end with an empty line.
            while line != b"\r\n":
                raw += line
                line = await reader.readuntil(b"\r\n")
            return raw + line, body
        chunk = await reader.readexactly(size + 2)
        raw += line + chunk
        body += chunk[:-2]
