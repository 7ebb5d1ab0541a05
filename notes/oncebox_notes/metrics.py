"""What the service counts. Names and labels are part of the contract."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from oncebox_notes.operations import Outcome
from oncebox_notes.problems import Problem

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The metrics of one application: its own registry, so that two of them do not meet."""

    def __init__(self) -> None:
        self._registry: Final = CollectorRegistry()
        self._requests: Final = Counter(
            "notes_requests",
            "Requests by method, route and status; 499 is a client that did not wait.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds: Final = Histogram(
            "notes_request_duration_seconds",
            "Time from the first header to the end of the answer.",
            ["method", "route"],
            registry=self._registry,
        )
        self._idempotency: Final = Counter(
            "notes_idempotency",
            "Operations by outcome: executed, replayed, or the code of the problem.",
            ["outcome"],
            registry=self._registry,
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        method = method if method in _METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def outcome(self, outcome: Outcome) -> None:
        """Counts one operation."""
        if isinstance(outcome, Problem):
            self._idempotency.labels(outcome.code).inc()
        else:
            self._idempotency.labels("replayed" if outcome.replayed else "executed").inc()

    def render(self) -> bytes:
        """The text exposition format."""
        return generate_latest(self._registry)
