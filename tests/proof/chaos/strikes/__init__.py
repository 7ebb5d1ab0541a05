"""Carrying out each kind of fault, at a moment at which operations are in flight."""

from typing import assert_never

from tests.proof.chaos.agents import Agents
from tests.proof.chaos.hand import Blow, Hand
from tests.proof.chaos.kinds import FaultKind
from tests.proof.chaos.strikes import agents as of_agents
from tests.proof.chaos.strikes import broker, databases, network, notes, relays, workers


def strike(kind: FaultKind, hand: Hand, agents: Agents) -> Blow:  # noqa: C901 a flat table
    """One fault and the way back from it: afterwards its party works again."""
    match kind:
        case FaultKind.WORKER_KILLED:
            return workers.kill_worker(hand)
        case FaultKind.WORKER_PAUSED_PAST_LEASE:
            return workers.pause_worker_past_lease(hand)
        case FaultKind.WORKER_DRAINED:
            return workers.drain_worker(hand)
        case FaultKind.RELAY_KILLED:
            return relays.kill_relay(hand)
        case FaultKind.RELAY_PAUSED:
            return relays.pause_relay(hand)
        case FaultKind.NOTES_KILLED:
            return notes.kill_notes(hand)
        case FaultKind.NOTES_PAUSED:
            return notes.pause_notes(hand)
        case FaultKind.NOTES_RESTARTED:
            return notes.restart_notes(hand)
        case FaultKind.BROKER_KILLED:
            return broker.kill_broker(hand)
        case FaultKind.BROKER_PAUSED:
            return broker.pause_broker(hand)
        case FaultKind.BROKER_CUT_OFF:
            return broker.cut_off_broker(hand)
        case FaultKind.MEMORY_ALARM:
            return broker.alarm_broker(hand)
        case FaultKind.SENDER_DATABASE_KILLED:
            return databases.kill_sender_database(hand)
        case FaultKind.SENDER_DATABASE_PAUSED:
            return databases.pause_sender_database(hand)
        case FaultKind.SENDER_DATABASE_CUT_OFF:
            return databases.cut_off_sender_database(hand)
        case FaultKind.NOTES_DATABASE_KILLED:
            return databases.kill_notes_database(hand)
        case FaultKind.NOTES_DATABASE_PAUSED:
            return databases.pause_notes_database(hand)
        case FaultKind.NOTES_DATABASE_CUT_OFF:
            return databases.cut_off_notes_database(hand)
        case FaultKind.DISK_FULL:
            return databases.fill_notes_disk(hand)
        case FaultKind.NETWORK_SLOW:
            return network.slow_down(hand)
        case FaultKind.LOST_REPLIES:
            return network.lose_replies(hand)
        case FaultKind.REPEATED_REQUESTS:
            return network.repeat_requests(hand)
        case FaultKind.LATE_REQUESTS:
            return network.delay_requests(hand)
        case FaultKind.AGENT_KILLED:
            return of_agents.kill_agent(hand, agents)
        case _:
            assert_never(kind)
