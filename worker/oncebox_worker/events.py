"""The names of everything that relays and workers log. `docs/logs.md` lists them with their fields."""

from enum import StrEnum


class Event(StrEnum):
    """A log line's `event`. Names are stable: people search and alert for them."""

    WORKER_STARTED = "worker_started"
    WORKER_DRAINING = "worker_draining"
    WORKER_DRAINED = "worker_drained"
    WORKER_KILLED = "worker_killed"
    RELAY_STARTED = "relay_started"
    RELAY_STOPPED = "relay_stopped"
    START_REFUSED = "start_refused"
    CHUNK_PUBLISHED = "chunk_published"
    PUBLISH_FAILED = "publish_failed"
    QUEUE_FULL = "queue_full"
    BROKER_UNREACHABLE = "broker_unreachable"
    DATABASE_UNREACHABLE = "database_unreachable"
    DELIVERY_FAILED = "delivery_failed"
    DEAD_MESSAGE = "dead_message"
    MESSAGE_UNREADABLE = "message_unreadable"
    DESTINATION_UNKNOWN = "destination_unknown"
    RECEIVER_SEEN = "receiver_seen"
    RECEIVER_UNREACHABLE = "receiver_unreachable"
    RECEIVER_NEVER_SEEN = "receiver_never_seen"
    RECEIVER_REFUSED = "receiver_refused"
    LEASE_LAPSED = "lease_lapsed"
    CALL_FINISHED = "call_finished"
    SETTLED_UNSENT = "settled_unsent"
    PARKED_POISON = "parked_poison"
    INVARIANT_VIOLATED = "invariant_violated"
