"""An HTTP/1.1 proxy that loses, keeps, repeats, reorders or spoils single requests and replies on demand."""

import asyncio
import contextlib
from contextlib import nullcontext

from oncebox_operate.faults.barriers import Barrier, Reordering
from oncebox_operate.faults.exchanges import Exchange, Match, matches
from oncebox_operate.faults.flow import Connection
from oncebox_operate.faults.http_messages import Message, read_request, read_response
from oncebox_operate.faults.rules import Rule, RuleBook, Weather
from oncebox_operate.faults.storm import Fault, Storm, Then
from oncebox_operate.faults.tcp_proxy import CHUNK, LINE_LIMIT, MOVING, TcpProxy, abort

__all__ = ["Barrier", "Exchange", "Fault", "FaultProxy", "Match", "Rule", "Then"]


class FaultProxy(TcpProxy):
    """``with FaultProxy(f"127.0.0.1:{port}") as proxy``: requests to ``proxy.url`` go to the upstream.

    Rules may be combined: one of each kind strikes an exchange, the oldest first. ``then`` says what the
    client sees when it gets no reply: ``hang`` keeps its connection open, ``reset`` resets it. Each
    request goes upstream over a connection of its own; it is the client's connection that ``cut_after``
    counts.
    """

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.exchanges: list[Exchange] = []
        self._rules = RuleBook()
        self._copies: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def requests(self, match: Match = None) -> list[Exchange]:
        """What arrived so far, in order of arrival."""
        return [exchange for exchange in self.exchanges if matches(match, exchange)]

    # --- requests: kept, late, out of order, lost, more than one -------------------------------------------

    def hold(self, size: int, *, match: Match = None, release_when_full: bool = True) -> Barrier:
        """Keep the next ``size`` requests back until all are here, then let them go at once. With
        ``release_when_full=False`` until ``barrier.release()``."""
        barrier = Barrier(size, opens_when_full=release_when_full, loop=self._loop)
        self._rules.add(Rule(Fault.HOLD, size, match, barrier=barrier))
        return barrier

    def reorder_requests(self, size: int, *, seed: int = 0, match: Match = None) -> Reordering:
        """Keep the next ``size`` requests back until all are here, then forward them in another order, each
        when the one before it has been answered. Every client gets its own reply."""
        barrier = Reordering(size, seed=seed, loop=self._loop)
        self._rules.add(Rule(Fault.REORDER, size, match, barrier=barrier))
        return barrier

    def delay_requests(self, seconds: float, count: int = 1, *, match: Match = None) -> Rule:
        """The upstream gets the request that much later, even when the client has gone by then."""
        return self._rules.add(Rule(Fault.DELAY, count, match, seconds=seconds))

    def lose_requests(self, count: int = 1, *, match: Match = None, then: Then = "hang") -> Rule:
        """The upstream never gets the request."""
        return self._rules.add(Rule(Fault.LOSE, count, match, then=then))

    def repeat_requests(self, count: int = 1, *, match: Match = None) -> Rule:
        """The upstream gets the request twice, one after the other; the client gets the first reply."""
        return self._rules.add(Rule(Fault.REPEAT, count, match))

    def double_requests(self, count: int = 1, *, match: Match = None) -> Rule:
        """The upstream gets two copies at once; the client gets the reply to one of them."""
        return self._rules.add(Rule(Fault.DOUBLE, count, match))

    def copy_requests_late(self, seconds: float, count: int = 1, *, match: Match = None) -> Rule:
        """So long after the client has its answer, or has lost it, the upstream gets a copy of the request: a
        packet that was on its way all the time."""
        return self._rules.add(Rule(Fault.COPY_LATE, count, match, seconds=seconds))

    def answer(self, data: bytes, count: int = 1, *, match: Match = None) -> Rule:
        """The client gets these bytes (a whole reply, or garbage), then the end of the connection; the
        upstream gets nothing."""
        return self._rules.add(Rule(Fault.ANSWER, count, match, data=data))

    # --- replies: kept, late, lost, cut short --------------------------------------------------------------

    def hold_replies(self, size: int, *, match: Match = None, release_when_full: bool = False) -> Barrier:
        """The same as `hold` for replies: the upstream has done its work, the client waits."""
        barrier = Barrier(size, opens_when_full=release_when_full, loop=self._loop)
        self._rules.add(Rule(Fault.HOLD_REPLY, size, match, barrier=barrier))
        return barrier

    def slow_replies(self, seconds: float, count: int = 1, *, match: Match = None) -> Rule:
        """The client gets the reply that much later."""
        return self._rules.add(Rule(Fault.SLOW, count, match, seconds=seconds))

    def swallow_replies(self, count: int = 1, *, match: Match = None, then: Then = "hang") -> Rule:
        """Forward the request, wait for the whole reply, and drop it."""
        return self._rules.add(Rule(Fault.SWALLOW, count, match, then=then))

    def truncate_replies(
        self, keep: int, count: int = 1, *, match: Match = None, then: Then = "reset"
    ) -> Rule:
        """The client gets the first ``keep`` bytes of the reply, status line included."""
        return self._rules.add(Rule(Fault.TRUNCATE, count, match, then=then, keep=keep))

    # --- all of it -----------------------------------------------------------------------------------------

    def storm(self, storm: Storm, *, match: Match = None) -> Weather:
        """From now on the n-th exchange that matches meets ``storm.gust(n)``, until `clear_rules`."""
        return self._rules.add_storm(storm, match)

    def withdraw(self, barrier: Barrier) -> None:
        """A barrier that nobody waits at any more: it holds none of those to come, and lets go those it holds."""
        self._rules.withdraw(barrier)

    def clear_rules(self) -> None:
        """No further exchange is struck; barriers open, storms end. Copies that are on their way still arrive."""
        self._rules.clear()

    async def _serve(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        while (request := await read_request(client_in)) is not None:
            method, path, _ = request.start.split(" ", 2)
            exchange = Exchange(method, path, request.headers, request.body, raw=request.raw)
            self.exchanges.append(exchange)
            self._rules.foresee(exchange)
            try:
                reply = await self._exchange(exchange, client_in, client_out)
            finally:
                self._send_late_copy(exchange)
                self._rules.forget(exchange)
            if reply.closes or request.closes:
                return

    async def _exchange(
        self, exchange: Exchange, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter
    ) -> Message:
        connection, strike = self._clients[client_out], self._rules.strike
        await self._until_mode_in(MOVING["requests"])
        if (held := strike(Fault.HOLD, exchange)) and held.barrier:
            await held.barrier.pass_when_open(exchange)
        if delayed := strike(Fault.DELAY, exchange):
            await asyncio.sleep(delayed.seconds)
        if lost := strike(Fault.LOSE, exchange):
            await _no_reply(lost.then, client_in)
        if answered := strike(Fault.ANSWER, exchange):
            client_out.write(answered.data)
            return Message("", {"connection": "close"}, b"", b"")
        reply = await self._forward_as_ruled(exchange, connection)
        if (held := strike(Fault.HOLD_REPLY, exchange)) and held.barrier:
            await held.barrier.pass_when_open(exchange)
        if slow := strike(Fault.SLOW, exchange):
            await asyncio.sleep(slow.seconds)
        if swallowed := strike(Fault.SWALLOW, exchange):
            await _no_reply(swallowed.then, client_in)
        await self._until_mode_in(MOVING["replies"])
        if truncated := strike(Fault.TRUNCATE, exchange):
            await self._pass_on("replies", reply.raw[: truncated.keep], client_out, connection)
            await _no_reply(truncated.then, client_in)
        await self._pass_on("replies", reply.raw, client_out, connection)
        exchange.replied = True
        return reply

    async def _forward_as_ruled(self, exchange: Exchange, connection: Connection) -> Message:
        """Once or twice, at its turn if it has one; the reply that the client is to get."""
        reordered = self._rules.strike(Fault.REORDER, exchange)
        turns = reordered.barrier if reordered else None
        async with turns.turn(exchange) if isinstance(turns, Reordering) else nullcontext():
            if self._rules.strike(Fault.DOUBLE, exchange):
                reply, _ = await asyncio.gather(
                    self._forward(exchange, connection), self._forward_copy(exchange)
                )
            else:
                reply = await self._forward(exchange, connection)
            exchange.status = status_of(reply)
            exchange.reply_body = reply.body
            if self._rules.strike(Fault.REPEAT, exchange):
                await self._forward_copy(exchange)
        return reply

    def _send_late_copy(self, exchange: Exchange) -> None:
        if late := self._rules.strike(Fault.COPY_LATE, exchange):
            copy = asyncio.ensure_future(self._arrive_late(exchange, late.seconds))
            self._copies.add(copy)
            copy.add_done_callback(self._copies.discard)

    async def _arrive_late(self, exchange: Exchange, seconds: float) -> None:
        await asyncio.sleep(seconds)
        # Nobody waits for it: an upstream that is away loses it.
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self._forward_copy(exchange)

    async def _forward_copy(self, exchange: Exchange) -> None:
        reply = await self._forward(exchange, None)
        exchange.copies.append(status_of(reply))

    async def _forward(self, exchange: Exchange, connection: Connection | None) -> Message:
        upstream_in, upstream_out = await asyncio.open_connection(*self.upstream, limit=LINE_LIMIT)
        try:
            await self._pass_on("requests", exchange.raw, upstream_out, connection)
            exchange.forwarded += 1
            return await read_response(upstream_in, method=exchange.method)
        except ConnectionResetError:
            # A cut in the middle of the request: the upstream must not take a half for the whole.
            abort(upstream_out)
            raise
        finally:
            upstream_out.close()

    async def _shut(self) -> None:
        await super()._shut()
        for copy in self._copies:
            copy.cancel()
        await asyncio.gather(*self._copies, return_exceptions=True)


async def _no_reply(then: Then, client_in: asyncio.StreamReader) -> None:
    """Raises: the connection ends here, at once or when the client gives up."""
    if then == "hang":
        while await client_in.read(CHUNK):
            pass
    raise ConnectionResetError


def status_of(reply: Message) -> int:
    """The number in the status line."""
    return int(reply.start.split(" ")[1])
