"""Requests as bytes on a socket, for what no HTTP client would send."""

import contextlib
import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Header = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Answer:
    """`status` is 0 when the connection ended without an answer. Names of `headers` are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


def request(method: bytes, target: bytes, headers: Sequence[Header], body: bytes = b"") -> bytes:
    """The bytes of a request; nothing is added but the name of the host and the wish to end the connection."""
    lines = [method + b" " + target + b" HTTP/1.1", b"Host: notes", b"Connection: close"]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join([*lines, b"", b""]) + body


def exchange(url: str, sent: bytes, *, timeout: float = 10.0) -> Answer:
    """Sends the bytes and reads the answer. One that only says to go on is no answer."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout) as connection:
        # Refused while it was being sent; what was answered is still there to be read.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(sent)
        return next(answers(connection), Answer(0, {}, b""))


def answers(connection: socket.socket) -> Iterator[Answer]:
    """The answers on a connection, one after the other, until the server ends it."""
    received = bytearray()
    while True:
        while b"\r\n\r\n" not in received:
            if not _more(connection, received):
                return
        head, _, rest = bytes(received).partition(b"\r\n\r\n")
        status, headers = _parse(head)
        length = int(headers.get("content-length", 0))
        received = bytearray(rest)
        while len(received) < length and _more(connection, received):
            pass
        if status >= 200:
            yield Answer(status, headers, bytes(received[:length]))
        del received[:length]


def _more(connection: socket.socket, received: bytearray) -> bool:
    try:
        chunk = connection.recv(65_536)
    except ConnectionResetError:
        return False
    received += chunk
    return bool(chunk)


def _parse(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(first.split(" ")[1]), headers
