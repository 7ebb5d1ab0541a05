"""Settings of relays and workers, read from `ONCEBOX_…` variables by the entry points and passed in from there."""

from typing import Annotated

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from oncebox_models.schedule import RetrySchedule
from oncebox_outbox.policy import Policy


class RoleSettings(BaseSettings):
    """What relay and worker share. Durations in seconds."""

    model_config = SettingsConfigDict(
        env_prefix="ONCEBOX_",
        frozen=True,
        extra="ignore",
        # A complaint about one setting must not print the others: the token is among them.
        hide_input_in_errors=True,
    )

    database_url: str
    """The sender's PostgreSQL: postgresql://user@host/database."""
    broker_url: Annotated[str, Field(pattern="^(amqps?|rediss?)://")]
    """RabbitMQ (amqp://…) or a Redis-protocol broker (redis://…)."""
    queue_prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,60}$")] = "oncebox"
    """First part of the broker's queue names: two installations may share one broker."""
    chunk: Annotated[int, Field(ge=1, le=500)] = 100
    """Most operations in one message, and so in one call. The receiver's batch limit must not be below."""
    lease_s: Annotated[float, Field(gt=0)] = 45.0
    """How long a claim lasts. Must exceed the worst time of a call and its settling: checked at start."""
    redispatch_s: Annotated[float, Field(gt=0)] = 60.0
    """After this long a message that led to no claim counts as lost, and the entry is sent to the broker again."""
    budget: Annotated[int, Field(ge=1)] = 25
    """Calls without a verdict before an operation is given up (sealed, never resent)."""
    retry_base_s: Annotated[float, Field(gt=0)] = 0.5
    """Longest first delay between two calls for one operation; it doubles from call to call."""
    retry_ceiling_s: Annotated[float, Field(gt=0)] = 30.0
    """Longest delay between two calls for one operation."""
    log_level: Annotated[str, Field(pattern="^(debug|info|warning|error)$")] = "info"

    def policy(self) -> Policy:
        """The outbox's numbers."""
        return Policy(
            lease_s=self.lease_s,
            budget=self.budget,
            redispatch_s=self.redispatch_s,
            schedule=RetrySchedule(self.retry_base_s, self.retry_ceiling_s),
        )


class RelaySettings(RoleSettings):
    """Settings of a relay: it reaches the database and the broker, and no receiver."""

    pass_limit: Annotated[int, Field(ge=1)] = 2_000
    """Most entries handed over in one pass."""
    queue_limit: Annotated[int, Field(ge=1)] = 500
    """Messages waiting in the queue above which the relay hands over nothing: hints need not pile up."""
    idle_poll_s: Annotated[float, Field(gt=0)] = 1.0
    """Longest pause between two looks when nothing wakes the relay."""


class WorkerSettings(RoleSettings):
    """Settings of a worker: it reaches the database, the broker and the receiver."""

    notes_url: str
    """The note service: http://host:port."""
    token: SecretStr
    """The worker's token at the note service (a delegate's)."""
    destination: str = "notes"
    """The destination that `notes_url` belongs to."""
    call_timeout_s: Annotated[float, Field(gt=0)] = 10.0
    """Total time of one call to the receiver, whatever it does."""
    connect_timeout_s: Annotated[float, Field(gt=0)] = 3.0
    concurrency: Annotated[int, Field(ge=1, le=200)] = 8
    """Chunks delivered at once by one worker process."""
