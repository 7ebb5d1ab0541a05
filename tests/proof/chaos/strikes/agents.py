"""Faults of agents: killed in the middle of a transaction."""

from tests.proof.chaos import eyes
from tests.proof.chaos.agents import Agents
from tests.proof.chaos.hand import NOTHING, Blow, Hand


def kill_agent(hand: Hand, agents: Agents) -> Blow:
    """kill -9 while it enqueues; it starts again and goes on where it was."""
    number = hand.chance.randrange(len(agents.roles))
    with hand.take(agents.roles[number]) as agent:
        if agent is None:
            return NOTHING
        if not hand.soon(lambda: hand.sender.number(eyes.ENQUEUING_BY, f"chaos agent {number}")):
            return NOTHING
        agent.kill()
        # What it has begun and not ended: nobody knows whether it was committed.
        in_doubt = agents.open_wish(number)
        hand.pause(0.0, 0.5)
        agent.launch()
        return Blow(in_doubt, "")
