"""An HTTP/1.1 proxy that loses, keeps, repeats or spoils single requests and replies on demand."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import Literal

from oncebox_operate.faults.http_messages import Message, read_request, read_response
from oncebox_operate.faults.tcp_proxy import CHUNK, LINE_LIMIT, Mode, TcpProxy

Then = Literal["hang", "reset"]


@dataclass(slots=True)
class Exchange:
    """A request that reached the proxy, and how far it got."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    forwarded: int = 0  # how often the upstream got it
    status: int | None = None  # what the upstream answered, seen by the client or not
    reply_body: bytes | None = None
    replied: bool = False  # the client was sent the upstream's reply, whole
    raw: bytes = field(default=b"", repr=False)


# "POST /v1/notes:batch", "GET /v1/operations/*" (the query is not looked at), a predicate, or every request.
Match = str | Callable[[Exchange], bool] | None


class Fault(Enum):
    HOLD = "hold"
    LOSE = "lose"
    ANSWER = "answer"
    REPEAT = "repeat"
    HOLD_REPLY = "hold reply"
    SLOW = "slow"
    SWALLOW = "swallow"
    TRUNCATE = "truncate"


class Barrier:
    """Where exchanges wait for each other, or for whoever asked for it."""

    def __init__(self, size: int, *, opens_when_full: bool, loop: asyncio.AbstractEventLoop) -> None:
        self.size = size
        self.exchanges: list[Exchange] = []
        self._opens_when_full = opens_when_full
        self._loop = loop
        self._full = threading.Event()
        self._open = asyncio.Event()

    @property
    def arrived(self) -> int:
        """How many it holds or let pass."""
        return len(self.exchanges)

    def wait_until_full(self, timeout: float = 20.0) -> None:
        """Until all that it was made for have arrived. Raises TimeoutError."""
        if not self._full.wait(timeout):
            raise TimeoutError(f"{self.arrived} of {self.size} arrived within {timeout:g} s")

    def release(self) -> None:
        """Let all that wait go on; it holds nobody any more. A client that went away does not matter: what
        was held is then a packet that arrives late."""
        self._loop.call_soon_threadsafe(self._open.set)

    async def pass_when_open(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        if self.arrived == self.size:
            self._full.set()
            if self._opens_when_full:
                self._open.set()
        await self._open.wait()


@dataclass(slots=True)
class Rule:
    """A fault for the next ``left`` exchanges that match; ``struck`` are those it met."""

    fault: Fault
    left: int
    match: Match
    then: Then = "hang"
    data: bytes = b""
    keep: int = 0
    seconds: float = 0.0
    barrier: Barrier | None = None
    struck: list[Exchange] = field(default_factory=list[Exchange])


class FaultProxy(TcpProxy):
    """``with FaultProxy(f"127.0.0.1:{port}") as proxy``: requests to ``proxy.url`` go to the upstream.

    Rules may be combined: one of each kind strikes an exchange, the oldest first. ``then`` says what the
    client sees when it gets no reply: ``hang`` keeps its connection open, ``reset`` resets it. Each
    request goes upstream over a connection of its own.
    """

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.exchanges: list[Exchange] = []
        self._rules: list[Rule] = []
        self._rules_lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def requests(self, match: Match = None) -> list[Exchange]:
        """What arrived so far, in order of arrival."""
        return [exchange for exchange in self.exchanges if _matches(match, exchange)]

    def hold(self, size: int, *, match: Match = None, release_when_full: bool = True) -> Barrier:
        """Keep the next ``size`` requests back until all are here, then let them go at once. With
        ``release_when_full=False`` until ``barrier.release()``."""
        barrier = Barrier(size, opens_when_full=release_when_full, loop=self._loop)
        self._add(Rule(Fault.HOLD, size, match, barrier=barrier))
        return barrier

    def hold_replies(self, size: int, *, match: Match = None, release_when_full: bool = False) -> Barrier:
        """The same for replies: the upstream has done its work, the client waits."""
        barrier = Barrier(size, opens_when_full=release_when_full, loop=self._loop)
        self._add(Rule(Fault.HOLD_REPLY, size, match, barrier=barrier))
        return barrier

    def swallow_replies(self, count: int = 1, *, match: Match = None, then: Then = "hang") -> Rule:
        """Forward the request, wait for the whole reply, and drop it."""
        return self._add(Rule(Fault.SWALLOW, count, match, then=then))

    def slow_replies(self, seconds: float, count: int = 1, *, match: Match = None) -> Rule:
        """The client gets the reply that much later."""
        return self._add(Rule(Fault.SLOW, count, match, seconds=seconds))

    def lose_requests(self, count: int = 1, *, match: Match = None, then: Then = "hang") -> Rule:
        """The upstream never gets the request."""
        return self._add(Rule(Fault.LOSE, count, match, then=then))

    def repeat_requests(self, count: int = 1, *, match: Match = None) -> Rule:
        """The upstream gets the request twice, one after the other; the client gets the first reply."""
        return self._add(Rule(Fault.REPEAT, count, match))

    def truncate_replies(
        self, keep: int, count: int = 1, *, match: Match = None, then: Then = "reset"
    ) -> Rule:
        """The client gets the first ``keep`` bytes of the reply, status line included."""
        return self._add(Rule(Fault.TRUNCATE, count, match, then=then, keep=keep))

    def answer(self, data: bytes, count: int = 1, *, match: Match = None) -> Rule:
        """The client gets these bytes (a whole reply, or garbage), then the end of the connection; the
        upstream gets nothing."""
        return self._add(Rule(Fault.ANSWER, count, match, data=data))

    def withdraw(self, barrier: Barrier) -> None:
        """A barrier that nobody waits at any more: it holds none of those to come, and lets go those it holds."""
        with self._rules_lock:
            self._rules = [rule for rule in self._rules if rule.barrier is not barrier]
        barrier.release()

    def clear_rules(self) -> None:
        """No further exchange is struck; barriers open."""
        with self._rules_lock:
            rules, self._rules = self._rules, []
        for rule in rules:
            if rule.barrier is not None:
                rule.barrier.release()

    async def _serve(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        while (request := await read_request(client_in)) is not None:
            method, path, _ = request.start.split(" ", 2)
            exchange = Exchange(method, path, request.headers, request.body, raw=request.raw)
            self.exchanges.append(exchange)
            reply = await self._exchange(exchange, client_in, client_out)
            if reply.closes or request.closes:
                return

    async def _exchange(
        self, exchange: Exchange, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter
    ) -> Message:
        await self._until_mode_in({Mode.PASS, Mode.NO_REPLIES})
        if (held := self._struck_by(Fault.HOLD, exchange)) and held.barrier:
            await held.barrier.pass_when_open(exchange)
        if lost := self._struck_by(Fault.LOSE, exchange):
            await _no_reply(lost.then, client_in)
        if answered := self._struck_by(Fault.ANSWER, exchange):
            client_out.write(answered.data)
            return Message("", {"connection": "close"}, b"", b"")
        reply = await self._forward(exchange)
        if self._struck_by(Fault.REPEAT, exchange):
            await self._forward(exchange)
        if (held := self._struck_by(Fault.HOLD_REPLY, exchange)) and held.barrier:
            await held.barrier.pass_when_open(exchange)
        if slow := self._struck_by(Fault.SLOW, exchange):
            await asyncio.sleep(slow.seconds)
        if swallowed := self._struck_by(Fault.SWALLOW, exchange):
            await _no_reply(swallowed.then, client_in)
        await self._until_mode_in({Mode.PASS})
        if truncated := self._struck_by(Fault.TRUNCATE, exchange):
            client_out.write(reply.raw[: truncated.keep])
            await client_out.drain()
            await _no_reply(truncated.then, client_in)
        client_out.write(reply.raw)
        await client_out.drain()
        exchange.replied = True
        return reply

    async def _forward(self, exchange: Exchange) -> Message:
        upstream_in, upstream_out = await asyncio.open_connection(*self.upstream, limit=LINE_LIMIT)
        try:
            upstream_out.write(exchange.raw)
            exchange.forwarded += 1
            await upstream_out.drain()
            reply = await read_response(upstream_in, method=exchange.method)
        finally:
            upstream_out.close()
        exchange.status = int(reply.start.split(" ")[1])
        exchange.reply_body = reply.body
        return reply

    def _add(self, rule: Rule) -> Rule:
        with self._rules_lock:
            self._rules.append(rule)
        return rule

    def _struck_by(self, fault: Fault, exchange: Exchange) -> Rule | None:
        with self._rules_lock:
            for rule in self._rules:
                if rule.fault is fault and rule.left > 0 and _matches(rule.match, exchange):
                    rule.left -= 1
                    rule.struck.append(exchange)
                    return rule
        return None


async def _no_reply(then: Then, client_in: asyncio.StreamReader) -> None:
    """Raises: the connection ends here, at once or when the client gives up."""
    if then == "hang":
        while await client_in.read(CHUNK):
            pass
    raise ConnectionResetError


def _matches(match: Match, exchange: Exchange) -> bool:
    if match is None:
        return True
    if isinstance(match, str):
        return fnmatchcase(f"{exchange.method} {exchange.path.partition('?')[0]}", match)
    return match(exchange)
