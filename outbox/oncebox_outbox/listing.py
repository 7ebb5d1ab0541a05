"""Lists of operations, newest first, page by page; and the timeline of one."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from oncebox_models.states import FINAL_STATES, CallKind, State
from oncebox_outbox import statements
from oncebox_outbox.edge import database_errors
from oncebox_outbox.status import OperationStatus, from_row


@dataclass(frozen=True, slots=True)
class Filter:
    """Which operations; None means any. `before`: only operations older than this UUID (the last of a page)."""

    states: Collection[State] | None = None
    tenant: str | None = None
    principal: str | None = None
    destination: str | None = None
    run: str | None = None
    before: UUID | None = None


def operations(connection: Connection, wanted: Filter, *, limit: int) -> list[OperationStatus]:
    """At most `limit` operations, newest first. Open ones are found through the entries, not through the history."""
    parameters: dict[str, object] = {
        "tenant": wanted.tenant,
        "principal": wanted.principal,
        "destination": wanted.destination,
        "run": wanted.run,
        "before": wanted.before,
        "limit": limit,
    }
    with database_errors():
        if wanted.states is None:
            return [from_row(row) for row in connection.execute(statements.LIST_ALL, parameters)]
        # `needs_review` is settled, or live with its access lost: both lists are asked for it.
        found: list[OperationStatus] = []
        parameters["states"] = [str(state) for state in wanted.states]
        if any(state not in FINAL_STATES or state is State.NEEDS_REVIEW for state in wanted.states):
            found += [from_row(row) for row in connection.execute(statements.LIST_OPEN, parameters)]
        if any(state in FINAL_STATES for state in wanted.states):
            found += [from_row(row) for row in connection.execute(statements.LIST_SETTLED, parameters)]
    return sorted(found, key=lambda operation: operation.id, reverse=True)[:limit]


@dataclass(frozen=True, slots=True)
class TimelineCall:
    """One call that concerned an operation. outcome None: it is under way."""

    call_id: UUID
    kind: CallKind
    worker: str
    operations: int
    started_at: datetime
    finished_at: datetime | None
    outcome: str | None
    reason: str | None
    http_status: int | None
    problem: dict[str, object] | None


def timeline(connection: Connection, id: UUID) -> list[TimelineCall]:
    """Every call that concerned the operation, in order of their start."""
    with database_errors():
        return [
            TimelineCall(
                row.call_id,
                CallKind(row.kind),
                row.worker,
                row.operations,
                row.started_at,
                row.finished_at,
                row.outcome,
                row.reason,
                row.http_status,
                row.problem,
            )
            for row in connection.execute(statements.TIMELINE, {"id": id})
        ]
