"""Celery's consumer without what we have no use for, however a worker is started.

Its delayed delivery adds 28 quorum queues to a broker at every worker's start. Its gossip, mingling and heartbeat
events cost a queue of their own and a third of the throughput, and tell nobody anything: the outbox is the truth.
"""

from typing import Any

from celery.worker import consumer


class Consumer(consumer.Consumer):
    """Named in the setting `worker_consumer`. Delays live in SQL: no message is ever sent with an ETA."""

    class Blueprint(consumer.Consumer.Blueprint):
        """The consumer's parts."""

        # Celery's shape: a list, though its stubs say set.
        default_steps = [  # noqa: RUF012  # pyright: ignore[reportAssignmentType]
            step
            for step in consumer.Consumer.Blueprint.default_steps
            if not step.endswith(":DelayedDelivery")
        ]

    def __init__(self, *args: Any, worker_options: dict[str, Any] | None = None, **more: Any) -> None:
        # As `--without-gossip --without-mingle --without-heartbeat` do: other parts require theirs, so none can go.
        without = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
        super().__init__(*args, worker_options={**(worker_options or {}), **without}, **more)
