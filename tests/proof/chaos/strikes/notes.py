"""Faults of the note service: killed, paused past the call, restarted, each with writes under way."""

from typing import Final

from tests.proof.chaos import eyes
from tests.proof.chaos.hand import NOTHING, Blow, Hand
from tests.proof.chaos.parties.installation import CALL_TIMEOUT_S

_END_S: Final = 45.0


def kill_notes(hand: Hand) -> Blow:
    """kill -9 before, in, or after a write."""
    with hand.take(hand.installation.notes) as notes:
        with hand.moment() as found:
            in_flight = hand.sender.number(eyes.LEASED)
            if notes is None or found is None or not in_flight:
                return NOTHING
            notes.kill()
        hand.pause(0.0, 1.5)
        notes.start()
        return Blow(in_flight, found[0])


def pause_notes(hand: Hand) -> Blow:
    """SIGSTOP for longer than a call may take; what waited in its sockets is executed when it is back."""
    with hand.take(hand.installation.notes) as notes:
        with hand.moment() as found:
            in_flight = hand.sender.number(eyes.LEASED)
            if notes is None or found is None or not in_flight or not notes.pause():
                return NOTHING
        try:
            seconds = hand.pause(CALL_TIMEOUT_S + 0.5, CALL_TIMEOUT_S + 5.0)
        finally:
            notes.resume()
        return Blow(in_flight, f"{found[0]}, {seconds:.1f} s")


def restart_notes(hand: Hand) -> Blow:
    """SIGTERM with open requests, which are answered first; then a new one."""
    with hand.take(hand.installation.notes) as notes:
        with hand.moment() as found:
            in_flight = hand.sender.number(eyes.LEASED)
            if notes is None or found is None or not in_flight:
                return NOTHING
            notes.ask_to_end()
            hand.pause(0.0, 0.5)
        notes.end(_END_S)
        notes.start()
        return Blow(in_flight, found[0])
