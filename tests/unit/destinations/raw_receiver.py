"""A receiver of raw bytes: each connection is served by a function that may break any rule of HTTP."""

import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

PATIENCE_S = 15.0


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    line: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> object:
        return json.loads(self.body)


class Connection:
    """One accepted connection, in the hands of a behaviour."""

    def __init__(self, raw: socket.socket, requests: list[Received], over: threading.Event) -> None:
        self._raw = raw
        self._requests = requests
        self.over = over
        """Set when the test is over: what a behaviour waits on instead of sleeping."""
        raw.settimeout(PATIENCE_S)

    def read(self) -> Received:
        """The next whole request; recorded. EOFError when the client has gone."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        line, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            body += self._more()
        request = Received(line, headers, body)
        self._requests.append(request)
        return request

    def write(self, data: bytes) -> None:
        self._raw.sendall(data)

    def reply(
        self, body: bytes | object = b"", status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """A well-formed answer; a body that is no bytes is sent as JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(content)}"]
        head += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.write("\r\n".join(head).encode() + b"\r\n\r\n" + content)

    def reset(self) -> None:
        """End with RST instead of FIN."""
        self._raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._raw.close()

    def close(self) -> None:
        self._raw.close()

    def wait_for_client_to_go(self) -> None:
        """Until the client has closed its side."""
        while self._raw.recv(65536):
            pass

    def _more(self) -> bytes:
        data = self._raw.recv(65536)
        if not data:
            raise EOFError
        return data


Behaviour = Callable[[Connection], None]


class RawReceiver:
    """Listens on a free port. Connection n is served by behaviour n, all later ones by the last."""

    def __init__(self, *behaviours: Behaviour) -> None:
        self._behaviours = behaviours
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.requests: list[Received] = []
        self.connections = 0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        # Closing does not wake a thread in accept(); shutting down does.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def _accept(self) -> None:
        while True:
            try:
                raw, _ = self._listener.accept()
            except OSError:
                return
            behaviour = self._behaviours[min(self.connections, len(self._behaviours) - 1)]
            self.connections += 1
            self._start(lambda raw=raw, behaviour=behaviour: self._serve(raw, behaviour))

    def _serve(self, raw: socket.socket, behaviour: Behaviour) -> None:
        connection = Connection(raw, self.requests, self._over)
        try:
            behaviour(connection)
        except (OSError, EOFError):
            pass
        finally:
            raw.close()

    def _start(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()
