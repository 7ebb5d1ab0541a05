"""Faults of single requests between workers and note service, and lines that are slow."""

from contextlib import ExitStack
from typing import Final

from oncebox_operate.faults.http_proxy import Exchange, Rule
from tests.proof.chaos import eyes
from tests.proof.chaos.hand import NOTHING, Blow, Hand, operations_in
from tests.proof.chaos.parties.installation import CALL_TIMEOUT_S
from tests.proof.chaos.parties.network import SENDS

_ANY_POST: Final = "POST /v1/*"
_STRIKE_S: Final = 6.0
_REORDERED: Final = 3


def lose_replies(hand: Hand) -> Blow:
    """The note service has done its work, and nobody hears of it, or hears only the beginning."""
    chance, proxy = hand.chance, hand.installation.network.workers_to_notes
    match = SENDS if chance.random() < 0.7 else _ANY_POST
    count = chance.randint(1, 3)
    match chance.choice(["dropped", "silence", "truncated", "cut off"]):
        case "dropped":
            return _rule(hand, "reset", proxy.swallow_replies(count, match=match, then="reset"))
        case "silence":
            return _rule(hand, "silence", proxy.swallow_replies(count, match=match, then="hang"))
        case "truncated":
            keep = chance.randrange(1, 200)
            then = chance.choice(("hang", "reset"))
            rule = proxy.truncate_replies(keep, count, match=match, then=then)
            return _rule(hand, f"after {keep} bytes", rule)
        case _:
            return _cut_in_an_answer(hand)


def repeat_requests(hand: Hand) -> Blow:
    """The note service gets a request more than once: after its answer, at the same time, or much later."""
    chance, proxy = hand.chance, hand.installation.network.workers_to_notes
    count = chance.randint(1, 3)
    match chance.choice(["again", "at once", "late"]):
        case "again":
            return _rule(hand, "one after the other", proxy.repeat_requests(count, match=SENDS))
        case "at once":
            return _rule(hand, "both at once", proxy.double_requests(count, match=SENDS))
        case _:
            seconds = chance.uniform(1.0, 20.0)
            rule = proxy.copy_requests_late(seconds, count, match=SENDS)
            return _rule(hand, f"a copy {seconds:.1f} s later", rule)


def delay_requests(hand: Hand) -> Blow:
    """A request arrives when its sender has given it up, or after those that were sent after it."""
    chance, proxy = hand.chance, hand.installation.network.workers_to_notes
    if chance.random() < 0.3:
        turns = proxy.reorder_requests(_REORDERED, seed=chance.randrange(1000), match=SENDS)
        hand.soon(lambda: turns.arrived >= _REORDERED)
        proxy.withdraw(turns)
        return _met(turns.exchanges, f"{turns.arrived} in another order") if turns.arrived > 1 else NOTHING
    if chance.random() < 0.5:
        seconds = chance.uniform(CALL_TIMEOUT_S + 0.2, 12.0)
        rule = proxy.delay_requests(seconds, chance.randint(1, 2), match=SENDS)
        return _rule(hand, f"{seconds:.1f} s late", rule)
    barrier = proxy.hold(2, match=SENDS, release_when_full=False)
    try:
        if not hand.soon(lambda: barrier.arrived):
            return NOTHING
        seconds = hand.pause(CALL_TIMEOUT_S + 0.2, 8.0)
    finally:
        proxy.withdraw(barrier)
    return _met(barrier.exchanges, f"held for {seconds:.1f} s")


def slow_down(hand: Hand) -> Blow:
    """One line is slow, or lets through a trickle."""
    network, chance = hand.installation.network, hand.chance
    name, proxy = chance.choice(list(network.by_name.items()))
    in_flight = hand.soon(lambda: hand.in_flight() + hand.sender.number(eyes.ENQUEUING))
    with ExitStack() as healing:
        if not in_flight or not healing.enter_context(hand.take_network(proxy)):
            return NOTHING
        if chance.random() < 0.5:
            delay_s = chance.uniform(0.05, 0.5)
            proxy.delay(delay_s)
            healing.callback(proxy.delay, 0)
            how = f"{delay_s * 1000:.0f} ms a chunk"
        else:
            rate = chance.uniform(2_000, 20_000)
            proxy.drip(rate)
            healing.callback(proxy.drip, None)
            how = f"{rate:.0f} bytes/s"
        seconds = hand.pause(2.0, 5.0)
    return Blow(in_flight, f"{name}: {how} for {seconds:.1f} s")


def _cut_in_an_answer(hand: Hand) -> Blow:
    """Every connection of a worker to the note service is reset after so many bytes more of an answer."""
    with hand.moment("reply held") as found:
        in_flight = hand.sender.number(eyes.LEASED)
        if found is None or not in_flight:
            return NOTHING
        size = hand.chance.randrange(400)
        hand.installation.network.workers_to_notes.cut_after(size, way="replies")
    return Blow(in_flight, f"lines cut after {size} bytes")


def _rule(hand: Hand, how: str, rule: Rule) -> Blow:
    """Wait until a rule has met all that it is for, or the time is up."""
    hand.soon(lambda: rule.left == 0, _STRIKE_S)
    rule.left = 0
    return _met(rule.struck, how)


def _met(exchanges: list[Exchange], how: str) -> Blow:
    return Blow(sum(map(operations_in, exchanges)), how) if exchanges else NOTHING
