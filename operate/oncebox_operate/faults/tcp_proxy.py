"""A TCP proxy whose network can be made to fail while it runs. For any protocol."""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

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
        self._clients: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
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
        """The network works again."""
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

    async def _serve(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        """One client connection; a failure or a cancellation resets it."""
        upstream_in, upstream_out = await asyncio.open_connection(*self.upstream)
        pumps = [
            asyncio.ensure_future(self._pump(client_in, upstream_out, {Mode.PASS, Mode.NO_REPLIES})),
            asyncio.ensure_future(self._pump(upstream_in, client_out, {Mode.PASS})),
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

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, modes: set[Mode]) -> None:
        while data := await source.read(CHUNK):
            await self._until_mode_in(modes)
            sink.write(data)
            await sink.drain()
        await self._until_mode_in(modes)
        sink.write_eof()

    async def _until_mode_in(self, modes: set[Mode]) -> None:
        while self._mode not in modes:
            await self._mode_changed.wait()

    async def _accept(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._clients[client_out] = task
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
        tasks = list(self._clients.values())
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
