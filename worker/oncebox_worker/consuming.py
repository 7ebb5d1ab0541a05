"""Celery's consumer without its delayed delivery, which adds 28 quorum queues to a broker at every worker's start."""

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
