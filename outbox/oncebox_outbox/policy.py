"""The numbers the sender works by, in one frozen value."""

from dataclasses import dataclass, field
from typing import Final

from oncebox_models.schedule import RetrySchedule

DEFAULT_DEADLINE_S: Final = 72 * 3600.0
"""Time to deliver when the caller names none, in seconds: an outage over a long weekend."""
DEFAULT_ADMISSION_WINDOW_S: Final = 7 * 24 * 3600.0
"""How far ahead a deadline may be while the receiver's own window was never seen, in seconds."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How claims, retries and giving up work.

    lease_s: time a claim lasts, in seconds; must exceed the worst time of a call with its settle (checked at start).
    budget: calls without a verdict before an operation is abandoned (sealed, never resent).
    poison_claims: claims in a row without an outcome before an operation is parked for review.
    access_lost_after: outcomes in a row that did not settle, the last two "not authenticated", before an operation
        says `needs_review`.
    redispatch_s: age at which a dispatch stamp counts as none, in seconds: the message may be lost.
    """

    lease_s: float = 45.0
    budget: int = 25
    poison_claims: int = 5
    access_lost_after: int = 3
    redispatch_s: float = 60.0
    schedule: RetrySchedule = field(default_factory=RetrySchedule)
