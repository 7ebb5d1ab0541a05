"""Cutting a party off: in silence, with a refusal, with a reset, or in one direction only."""

import time
from contextlib import ExitStack

from oncebox_operate.faults.tcp_proxy import TcpProxy
from tests.proof.chaos.hand import Hand


def cut_off(hand: Hand, proxies: list[TcpProxy]) -> str | None:
    """Nothing gets through these proxies for a while; how, in words. None: another fault has one of them."""
    with ExitStack() as healing:
        if not healing.enter_context(hand.take_network(*proxies)):
            return None
        for proxy in proxies:
            healing.callback(proxy.pass_through)
        how = hand.chance.choice(["silence", "refusal", "reset", "replies kept, then cut"])
        for proxy in proxies:
            match how:
                case "silence":
                    proxy.blackhole()
                case "refusal":
                    proxy.refuse()
                case "reset":
                    proxy.reset()
                case _:
                    # What was asked is done; nobody hears of it.
                    proxy.keep_replies()
        seconds = hand.pause(0.5, 4.0)
        if how == "replies kept, then cut":
            for proxy in proxies:
                proxy.cut()
            time.sleep(0.1)
        return f"{how}, {seconds:.1f} s"
