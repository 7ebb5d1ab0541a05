"""What a dashboard, a scrape or `oncebox lag` asks: depth and age by state, exact with no worker alive."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from oncebox_models.states import State
from oncebox_outbox import statements
from oncebox_outbox.edge import database_errors

DUE_SOON_S: Final = 30.0
"""Entries due within this many seconds count for `scale_target`."""


@dataclass(frozen=True, slots=True)
class Depth:
    """Live operations of one destination in one state. oldest_age_s: seconds since the oldest was enqueued."""

    destination: str
    state: State
    entries: int
    oldest_age_s: float
    to_do: int


@dataclass(frozen=True, slots=True)
class Lag:
    """All live operations. Every registered destination is present, with zeros when it has none."""

    depths: tuple[Depth, ...]
    destinations: tuple[str, ...]
    violations: dict[str, int]

    @property
    def entries(self) -> int:
        return sum(depth.entries for depth in self.depths)

    @property
    def unknown(self) -> int:
        return sum(depth.entries for depth in self.depths if depth.state is State.UNKNOWN)

    @property
    def oldest_age_s(self) -> float:
        """Seconds since the oldest live operation was enqueued; 0 when there is none."""
        return max((depth.oldest_age_s for depth in self.depths), default=0.0)

    @property
    def scale_target(self) -> int:
        """Ready, leased and due soon together: the one number for an autoscaler."""
        return sum(depth.to_do for depth in self.depths)


def lag(connection: Connection) -> Lag:
    """Read depth and age in one pass over the live entries; settled operations cost nothing."""
    with database_errors():
        depths = tuple(
            Depth(row.destination, State(row.state), row.entries, max(row.oldest_age_s, 0.0), row.to_do)
            for row in connection.execute(statements.LAG, {"due_soon_s": DUE_SOON_S})
        )
        destinations = tuple(row.name for row in connection.execute(statements.DESTINATIONS))
        violations = {row.kind: row.violations for row in connection.execute(statements.VIOLATIONS)}
    return Lag(depths, destinations, violations)
