"""Faults of the broker: killed, paused, cut off, in a memory alarm."""

from oncebox_operate.faults.tcp_proxy import TcpProxy
from tests.proof.chaos import eyes
from tests.proof.chaos.hand import NOTHING, Blow, Hand
from tests.proof.chaos.strikes.cutting import cut_off


def kill_broker(hand: Hand) -> Blow:
    """kill -9; it starts again on its data."""
    in_flight = _in_flight(hand)
    if not in_flight:
        return NOTHING
    hand.installation.broker.kill()
    seconds = hand.pause(0.0, 2.0)
    hand.installation.broker.restart()
    return Blow(in_flight, f"started again {seconds:.1f} s later")


def pause_broker(hand: Hand) -> Blow:
    """SIGSTOP: it takes connections and bytes, and answers nothing."""
    in_flight = _in_flight(hand)
    if not in_flight:
        return NOTHING
    hand.installation.broker.pause()
    try:
        seconds = hand.pause(2.0, 7.0)
    finally:
        hand.installation.broker.resume()
    return Blow(in_flight, f"{seconds:.1f} s")


def cut_off_broker(hand: Hand) -> Blow:
    """From the relays, from the workers, or from all of them."""
    network = hand.installation.network
    relays, workers = network.relays_to_broker, network.workers_to_broker
    proxies: list[TcpProxy] = hand.chance.choice([[relays], [workers], [relays, workers]])
    in_flight = _in_flight(hand)
    how = cut_off(hand, proxies) if in_flight else None
    return NOTHING if how is None else Blow(in_flight, how)


def alarm_broker(hand: Hand) -> Blow:
    """No publisher gets anything through while it lasts."""
    in_flight = _in_flight(hand)
    if not in_flight:
        return NOTHING
    hand.installation.broker.alarm()
    try:
        seconds = hand.pause(2.0, 6.0)
    finally:
        hand.installation.broker.end_alarm()
    return Blow(in_flight, f"{seconds:.1f} s")


def _in_flight(hand: Hand) -> int:
    """At a moment at which the broker has something, or is being given it."""
    handed_over = hand.soon(lambda: hand.sender.number(eyes.HANDED_OVER))
    return handed_over + hand.sender.number(eyes.LEASED) if handed_over else 0
