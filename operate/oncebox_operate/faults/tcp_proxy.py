"""A TCP proxy whose network can be made to fail while it runs. For any protocol."""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, Final, Literal, Self, TypeVar
from urllib.parse import urlsplit

from oncebox_operate.faults.flow import WAYS, Connection, Line, Way

Value = TypeVar("Value")
CHUNK = 65536
LINE_LIMIT = 1024 * 1024
CALL_SECONDS = 10.0


class Mode(Enum):
    """What the network does. ``PASS`` also lets go what was kept back by the others."""

    PASS = "pass"
    BLACKHOLE = "blackhole"  # connections stay open, no byte moves either way
    NO_REPLIES = "no replies"  # requests arrive, what comes back is kept back
    RESET = "reset"  # each connection is reset at once
    REFUSE = "refuse"  # nothing listens


# In which the bytes of a way move.
MOVING: Final[dict[Way, frozenset[Mode]]] = {
    "requests": frozenset({Mode.PASS, Mode.NO_REPLIES}),
    "replies": frozenset({Mode.PASS}),
}


class TcpProxy:
    """``with TcpProxy("127.0.0.1:5672") as proxy``: connect to ``proxy.port`` instead.

    It runs in a thread of its own; every method may be called from any thread. A proxy has accepted a
    connection before it knows whether the upstream does: with the upstream down, a client sees a reset,
    not a refusal. For a refusal use ``refuse()``.
    """

    def __init__(self, upstream: str) -> None:
        address = urlsplit(upstream if "//" in upstream else f"//{upstream}")
        if address.hostname is None or address.port is None:
            raise ValueError(f"{upstream!r} names no host and port")
        self.upstream = (address.hostname, address.port)
        self.connections = 0
        self.port = 0
        self._mode = Mode.PASS
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._clients: dict[asyncio.StreamWriter, Connection] = {}
        self._lines: dict[Way, Line] = {way: Line() for way in WAYS}
        self._left_for_next: dict[Way, int] = {}
        self._mode_changed = asyncio.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_SECONDS)
        self._loop.close()

    @property
    def address(self) -> str:
        """host:port to connect to."""
        return f"127.0.0.1:{self.port}"

    @property
    def open_connections(self) -> int:
        return len(self._clients)

    def pass_through(self) -> None:
        """The network works again, at its full speed. A cut that was ordered still comes."""
        for line in self._lines.values():
            line.delay, line.rate = 0.0, None
        self._run(self._set_mode(Mode.PASS))

    def blackhole(self) -> None:
        """Nothing gets through, and nobody is told: neither on open connections nor on new ones."""
        self._run(self._set_mode(Mode.BLACKHOLE))

    def keep_replies(self) -> None:
        """Requests still arrive; what comes back is kept until ``pass_through()``."""
        self._run(self._set_mode(Mode.NO_REPLIES))

    def reset(self) -> None:
        """Reset (RST) every open connection, and each new one at once."""
        self._run(self._set_mode(Mode.RESET))

    def refuse(self) -> None:
        """Reset every open connection; a new one is refused, since nobody listens."""
        self._run(self._set_mode(Mode.REFUSE))

    def cut(self) -> None:
        """Reset the connections that are open now; new ones work as before."""
        self._run(self._cut())

    def delay(self, seconds: float, *, way: Way | None = None) -> None:
        """Each chunk waits that long before it is passed on, both ways or one; `delay(0)` ends it."""
        for line in self._lines_of(way):
            line.delay = seconds

    def drip(self, bytes_per_second: float | None, *, way: Way | None = None) -> None:
        """No more than so many bytes pass in a second, of each connection, both ways or one; None ends it."""
        if bytes_per_second is not None and bytes_per_second <= 0:
            raise ValueError("for no bytes at all there is blackhole()")
        for line in self._lines_of(way):
            line.rate = bytes_per_second

    def cut_after(self, size: int, *, way: Way, of: Literal["open", "next"] = "open") -> None:
        """Let so many bytes more pass that way, and then reset the connection, both sides: each of those that are
        open now, or the next one. With 0 the first byte does not pass. Of very many bytes those that the receiver
        has no room for are lost with the connection."""
        self._run(self._order_cut(size, way, of))

    async def _order_cut(self, size: int, way: Way, of: Literal["open", "next"]) -> None:
        if of == "next":
            self._left_for_next[way] = size
            return
        for connection in self._clients.values():
            connection.left[way] = size

    def _lines_of(self, way: Way | None) -> list[Line]:
        return list(self._lines.values()) if way is None else [self._lines[way]]

    async def _serve(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        """One client connection; a failure or a cancellation resets it."""
        connection = self._clients[client_out]
        upstream_in, upstream_out = await asyncio.open_connection(*self.upstream)
        pumps = [
            asyncio.ensure_future(self._pump("requests", client_in, upstream_out, connection)),
            asyncio.ensure_future(self._pump("replies", upstream_in, client_out, connection)),
        ]
        try:
            # gather ends at the first failure: a reset of one side resets the other.
            await asyncio.gather(*pumps)
            upstream_out.close()
        except BaseException:
            abort(upstream_out)
            raise
        finally:
            for pump in pumps:
                pump.cancel()

    async def _pump(
        self, way: Way, source: asyncio.StreamReader, sink: asyncio.StreamWriter, connection: Connection
    ) -> None:
        while data := await source.read(CHUNK):
            await self._pass_on(way, data, sink, connection)
        await self._until_mode_in(MOVING[way])
        sink.write_eof()

    async def _pass_on(
        self, way: Way, data: bytes, sink: asyncio.StreamWriter, connection: Connection | None = None
    ) -> None:
        """Write, as the network now is. Raises ConnectionResetError when the connection is to be cut."""
        line = self._lines[way]
        if line.delay:
            await asyncio.sleep(line.delay)
        for piece in line.pieces(data):
            await self._until_mode_in(MOVING[way])
            sink.write(piece if connection is None else connection.admit(way, piece))
            await sink.drain()
            if connection is not None and connection.is_over(way):
                raise ConnectionResetError
            await line.rest_after(piece)

    async def _until_mode_in(self, modes: frozenset[Mode]) -> None:
        while self._mode not in modes:
            await self._mode_changed.wait()

    async def _accept(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._clients[client_out] = Connection(task, self._left_for_next)
        self._left_for_next = {}
        try:
            if self._mode is Mode.RESET:
                raise ConnectionResetError
            await self._serve(client_in, client_out)
            client_out.close()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # CancelledError: cut on request; passed on, the stream protocol would report it as our error.
            abort(client_out)
        finally:
            del self._clients[client_out]

    async def _set_mode(self, mode: Mode) -> None:
        self._mode = mode
        # Everybody who waits looks again; who comes later waits for the next change.
        self._mode_changed.set()
        self._mode_changed.clear()
        if mode in (Mode.RESET, Mode.REFUSE):
            await self._cut()
        if mode is Mode.REFUSE:
            await self._close_listener()
        elif self._server is None:
            await self._listen()

    async def _cut(self) -> None:
        tasks = [connection.task for connection in self._clients.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", self.port, limit=LINE_LIMIT, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close_listener(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _shut(self) -> None:
        await self._close_listener()
        await self._cut()

    def _run(self, work: Coroutine[Any, Any, Value]) -> Value:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_SECONDS)

    def _soon(self, call: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(call)


def abort(writer: asyncio.StreamWriter) -> None:
    """Close with RST: what is still on its way is lost, as when the other machine dies."""
    connection = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
