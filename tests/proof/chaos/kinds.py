"""What can break, and which faults may not overlap because they meet the same party."""

from enum import StrEnum
from typing import Final, assert_never


class Lane(StrEnum):
    """One fault at a time in a lane; the lanes run side by side, so that faults of different lanes overlap."""

    WORKERS = "workers"
    ZOMBIES = "zombies"
    RELAYS = "relays"
    NOTES = "notes"
    SENDER_DATABASE = "sender database"
    NOTES_DATABASE = "notes database"
    BROKER = "broker"
    NETWORK = "network"
    AGENTS = "agents"


class FaultKind(StrEnum):
    """Every kind of fault; the value is its name in the report."""

    WORKER_KILLED = "worker_killed"
    WORKER_PAUSED_PAST_LEASE = "worker_paused_past_lease"
    WORKER_DRAINED = "worker_drained"
    RELAY_KILLED = "relay_killed"
    RELAY_PAUSED = "relay_paused"
    NOTES_KILLED = "notes_killed"
    NOTES_PAUSED = "notes_paused_past_the_call"
    NOTES_RESTARTED = "notes_restarted"
    BROKER_KILLED = "broker_killed"
    BROKER_PAUSED = "broker_paused"
    BROKER_CUT_OFF = "broker_cut_off"
    MEMORY_ALARM = "memory_alarm"
    SENDER_DATABASE_KILLED = "sender_database_killed"
    SENDER_DATABASE_PAUSED = "sender_database_paused"
    SENDER_DATABASE_CUT_OFF = "sender_database_cut_off"
    NOTES_DATABASE_KILLED = "notes_database_killed"
    NOTES_DATABASE_PAUSED = "notes_database_paused"
    NOTES_DATABASE_CUT_OFF = "notes_database_cut_off"
    DISK_FULL = "disk_full"
    NETWORK_SLOW = "network_slow"
    LOST_REPLIES = "lost_replies"
    REPEATED_REQUESTS = "repeated_requests"
    LATE_REQUESTS = "late_requests"
    AGENT_KILLED = "agent_killed"

    @property
    def lane(self) -> Lane:
        """Where it waits for its turn."""
        match self:
            case FaultKind.WORKER_KILLED | FaultKind.WORKER_DRAINED:
                return Lane.WORKERS
            case FaultKind.WORKER_PAUSED_PAST_LEASE:
                return Lane.ZOMBIES
            case FaultKind.RELAY_KILLED | FaultKind.RELAY_PAUSED:
                return Lane.RELAYS
            case FaultKind.NOTES_KILLED | FaultKind.NOTES_PAUSED | FaultKind.NOTES_RESTARTED:
                return Lane.NOTES
            case (
                FaultKind.SENDER_DATABASE_KILLED
                | FaultKind.SENDER_DATABASE_PAUSED
                | FaultKind.SENDER_DATABASE_CUT_OFF
            ):
                return Lane.SENDER_DATABASE
            case (
                FaultKind.NOTES_DATABASE_KILLED
                | FaultKind.NOTES_DATABASE_PAUSED
                | FaultKind.NOTES_DATABASE_CUT_OFF
                | FaultKind.DISK_FULL
            ):
                return Lane.NOTES_DATABASE
            case (
                FaultKind.BROKER_KILLED
                | FaultKind.BROKER_PAUSED
                | FaultKind.BROKER_CUT_OFF
                | FaultKind.MEMORY_ALARM
            ):
                return Lane.BROKER
            case (
                FaultKind.NETWORK_SLOW
                | FaultKind.LOST_REPLIES
                | FaultKind.REPEATED_REQUESTS
                | FaultKind.LATE_REQUESTS
            ):
                return Lane.NETWORK
            case FaultKind.AGENT_KILLED:
                return Lane.AGENTS
            case _:
                assert_never(self)


# About how long a fault and the way back take, in seconds: what a plan reckons with.
TAKES_S: Final[dict[FaultKind, float]] = {
    FaultKind.WORKER_KILLED: 4.0,
    FaultKind.WORKER_DRAINED: 6.0,
    FaultKind.WORKER_PAUSED_PAST_LEASE: 26.0,
    FaultKind.RELAY_KILLED: 4.0,
    FaultKind.RELAY_PAUSED: 5.0,
    FaultKind.NOTES_KILLED: 4.0,
    FaultKind.NOTES_PAUSED: 5.0,
    FaultKind.NOTES_RESTARTED: 5.0,
    FaultKind.BROKER_KILLED: 9.0,
    FaultKind.BROKER_PAUSED: 5.0,
    FaultKind.BROKER_CUT_OFF: 4.0,
    FaultKind.MEMORY_ALARM: 6.0,
    FaultKind.SENDER_DATABASE_KILLED: 4.0,
    FaultKind.SENDER_DATABASE_PAUSED: 4.0,
    FaultKind.SENDER_DATABASE_CUT_OFF: 4.0,
    FaultKind.NOTES_DATABASE_KILLED: 4.0,
    FaultKind.NOTES_DATABASE_PAUSED: 4.0,
    FaultKind.NOTES_DATABASE_CUT_OFF: 4.0,
    FaultKind.DISK_FULL: 8.0,
    FaultKind.NETWORK_SLOW: 4.0,
    FaultKind.LOST_REPLIES: 1.0,
    FaultKind.REPEATED_REQUESTS: 1.0,
    FaultKind.LATE_REQUESTS: 5.0,
    FaultKind.AGENT_KILLED: 2.0,
}

ONCE: Final = frozenset({FaultKind.DISK_FULL})
"""Kinds that strike once in a run, however long it is."""
