"""Faults of relays: killed and paused between the stamp and the broker's word."""

from contextlib import ExitStack

from tests.proof.chaos import eyes
from tests.proof.chaos.hand import NOTHING, Blow, Hand


def kill_relay(hand: Hand) -> Blow:
    """kill -9 while operations are handed over to the broker."""
    with hand.take(hand.chance.choice(hand.installation.relays)) as relay:
        if relay is None:
            return NOTHING
        with ExitStack() as network:
            how = _keep_confirms(hand, network)
            handed_over = hand.soon(lambda: hand.sender.number(eyes.HANDED_OVER))
            if not handed_over:
                return NOTHING
            relay.kill()
        hand.pause(0.0, 1.0)
        relay.launch()
        return Blow(handed_over, how)


def pause_relay(hand: Hand) -> Blow:
    """SIGSTOP while operations are handed over; others go on, and it comes back with old stamps in its hands."""
    with hand.take(hand.chance.choice(hand.installation.relays)) as relay:
        if relay is None:
            return NOTHING
        with ExitStack() as network:
            how = _keep_confirms(hand, network)
            handed_over = hand.soon(lambda: hand.sender.number(eyes.HANDED_OVER))
            if not handed_over or not relay.pause():
                return NOTHING
        try:
            seconds = hand.pause(2.0, 8.0)
        finally:
            relay.resume()
        return Blow(handed_over, f"{how}, {seconds:.1f} s")


def _keep_confirms(hand: Hand, network: ExitStack) -> str:
    """Half the time the broker's word does not come back until the relay has been struck."""
    proxy = hand.installation.network.relays_to_broker
    if hand.chance.random() < 0.5 or not network.enter_context(hand.take_network(proxy)):
        return "at any point"
    proxy.keep_replies()
    network.callback(proxy.pass_through)
    return "published, not confirmed"
