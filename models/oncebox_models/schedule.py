"""The one retry schedule, for every call and every read: exponential, full jitter, a ceiling."""

from dataclasses import dataclass
from typing import Protocol


class Random(Protocol):
    """Where jitter comes from: a function of no arguments with values in [0, 1)."""

    def __call__(self) -> float: ...


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """Delays between tries. Full jitter, so that many clients do not return in step.

    base_s: the longest first delay, in seconds. ceiling_s: the longest delay ever, in seconds.
    """

    base_s: float = 0.5
    ceiling_s: float = 30.0

    def __post_init__(self) -> None:
        if not 0 < self.base_s <= self.ceiling_s:
            raise ValueError(
                f"need 0 < base_s <= ceiling_s, got base_s={self.base_s}, ceiling_s={self.ceiling_s}"
            )

    def delay_s(self, retries: int, random: Random, *, not_before_s: float = 0.0) -> float:
        """Seconds to wait after `retries` earlier tries (0 for the first delay).

        `not_before_s` is a receiver's Retry-After: the delay is never shorter, and keeps its jitter on top.
        """
        # 2**retries overflows a float near 1,024: the exponent is bounded, the ceiling decides long before.
        longest = min(self.ceiling_s, self.base_s * 2.0 ** min(retries, 60))
        return not_before_s + random() * longest
