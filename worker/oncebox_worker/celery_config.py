"""Celery's settings for workers. Each differs from the default for a reason given beside it.

The relay does not use them: it publishes on a connection of its own with confirms and timeouts. A worker whose
own heartbeat event waited for a confirm would hang for ever on a frozen broker.
"""

from typing import Final

from oncebox_worker.settings import WorkerSettings
from oncebox_worker.topology import Topology

REDIS_TRANSPORT: Final = {
    # Beyond the longest time a message may wait in a worker; the outbox re-sends lost ones long before.
    "visibility_timeout": 900,
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    "socket_timeout": 30,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
    "health_check_interval": 25,
}


AMQP_TRANSPORT: Final = {"read_timeout": 5, "write_timeout": 5}
"""Longest wait for one answer of the broker, in seconds: a frozen one must not keep a worker from leaving."""


def celery_config(settings: WorkerSettings) -> dict[str, object]:
    """The configuration of a worker's Celery app."""
    topology = Topology(settings.queue_prefix)
    redis = settings.broker_url.startswith(("redis", "rediss"))
    return {
        "broker_url": settings.broker_url,
        "broker_transport_options": REDIS_TRANSPORT if redis else AMQP_TRANSPORT,
        "broker_connection_retry_on_startup": True,
        # A long outage must not end the worker.
        "broker_connection_max_retries": None,
        # The broker's own ack timeout closes the channel; that must not end the process either.
        "broker_channel_error_retry": True,
        "broker_connection_timeout": 5,
        "broker_heartbeat": 30,
        "broker_heartbeat_checkrate": 3,
        "task_queues": [topology.deliver],
        "task_default_queue": topology.deliver.name,
        "task_default_exchange": topology.deliver.exchange.name,
        "task_default_routing_key": "deliver",
        # A misspelt queue must fail, not quietly become a classic one.
        "task_create_missing_queues": False,
        # A message is acknowledged when its work is done; whatever ends the worker before brings it back.
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_acks_on_failure": False,
        "task_acks_on_timeout": False,
        "task_ignore_result": True,
        "result_backend": None,
        "task_serializer": "json",
        "accept_content": ["json"],
        "worker_consumer": "oncebox_worker.consuming:Consumer",
        # Its queue is exclusive to a node's name, and the default name is the same for all workers of a machine.
        "worker_enable_remote_control": False,
        # For Celery's own command; its default is the number of cores, and our connections are counted for this.
        "worker_concurrency": settings.concurrency,
        "worker_prefetch_multiplier": 1,
        # After a lost connection Celery takes fewer messages until its running tasks have ended, and has been seen never
        # to take more again. Ours may come twice, so there is nothing to wait for.
        "worker_enable_prefetch_count_reduction": False,
        "worker_cancel_long_running_tasks_on_connection_loss": True,
        "worker_disable_rate_limits": True,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_send_task_events": False,
        "task_send_sent_event": False,
        "enable_utc": True,
        "timezone": "UTC",
    }
