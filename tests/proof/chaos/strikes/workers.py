"""Faults of workers: killed, drained, paused past their lease."""

import time
from contextlib import ExitStack
from typing import Final

from tests.proof.chaos import eyes
from tests.proof.chaos.hand import NOTHING, Blow, Hand
from tests.proof.chaos.parties.installation import LEASE_S
from tests.proof.chaos.parties.spawning import Role

_DRAIN_S: Final = 45.0
_PAST_LEASE_S: Final = (1.5, 4.0)
_TAKE_OVER_S: Final = 20.0
"""How much longer a zombie is kept until others have taken over from it: with a database away nobody can."""
_TRIES: Final = 40


def kill_worker(hand: Hand) -> Blow:
    """kill -9 in the middle of a call."""
    with ExitStack() as seat:
        with hand.moment() as found:
            worker = seat.enter_context(hand.take(_of_moment(hand, found)))
            if found is None or worker is None or not hand.leased_by(worker.pid):
                return NOTHING
            worker.kill()
            # Counted when it is dead: nobody is at work on what it has.
            left = len(hand.leased_by(worker.pid))
        hand.pause(0.0, 1.0)
        worker.launch()
        return Blow(left, found[0])


def drain_worker(hand: Hand) -> Blow:
    """SIGTERM in the middle of a call: it finishes, and another takes its seat."""
    with ExitStack() as seat:
        with hand.moment() as found:
            worker = seat.enter_context(hand.take(_of_moment(hand, found)))
            if found is None or worker is None:
                return NOTHING
            held = len(hand.leased_by(worker.pid))
            worker.ask_to_end()
            hand.pause(0.1, 0.5)
        # The call goes on now, and the worker ends after it.
        worker.end(_DRAIN_S)
        worker.launch()
        return Blow(held, found[0])


def pause_worker_past_lease(hand: Hand) -> Blow:
    """SIGSTOP for longer than its lease. Others take its operations over; then it comes back as a zombie.

    Its request may have been executed or not, the answer may lie in its socket, or the network may keep its request
    until it is back.
    """
    if hand.chance.random() < 0.4:
        return _pause_at_any_point(hand)
    # The seat is left before the network heals: a late request arrives when the zombie is back.
    with ExitStack() as network, ExitStack() as seat:
        found = network.enter_context(hand.moment("request held", "reply held"))
        worker = seat.enter_context(hand.take(_of_moment(hand, found)))
        if found is None or worker is None or not worker.pause():
            return NOTHING
        seat.callback(worker.resume)
        held = hand.leased_by(worker.pid)
        if not held:
            return NOTHING
        late = found[0] == "request held" and hand.chance.random() < 0.5
        if not late:
            network.close()
        return _zombie(hand, worker.pid, held, f"{found[0]}{', until it was back' if late else ''}")


def _pause_at_any_point(hand: Hand) -> Blow:
    """Wherever it is between its claim and the end of settling."""
    for _ in range(_TRIES):
        rows = hand.soon(lambda: hand.sender.rows(eyes.ANY_LEASED))
        if not rows:
            return NOTHING
        with ExitStack() as seat:
            worker = seat.enter_context(hand.take(hand.installation.worker_with(rows[0][0])))
            if worker is None or not worker.pause():
                continue
            seat.callback(worker.resume)
            held = hand.leased_by(worker.pid)
            if held:
                return _zombie(hand, worker.pid, held, "at any point")
    return NOTHING


def _zombie(hand: Hand, pid: int, held: list[object], how: str) -> Blow:
    """Let the lease run out. What counts as struck is what others have taken over from it when it comes back."""
    hand.pause(LEASE_S + _PAST_LEASE_S[0], LEASE_S + _PAST_LEASE_S[1])
    limit = time.monotonic() + _TAKE_OVER_S
    while (left := _still_held(hand, pid, held)) and time.monotonic() < limit:
        time.sleep(0.1)
    return Blow(len(held) - left, how)


def _still_held(hand: Hand, pid: int, held: list[object]) -> int:
    rows = hand.sender.rows(eyes.STILL_HELD, held, str(pid))
    return len(held) if rows is None else int(rows[0][0])


def _of_moment(hand: Hand, found: tuple[object, int] | None) -> Role | None:
    return None if found is None else hand.installation.worker_with(found[1])
