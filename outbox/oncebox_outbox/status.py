"""What is known of an operation now, as a value, with the sentence that says it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, Row
from sqlalchemy.orm import Session

from oncebox_models.names import wrong_operation_id
from oncebox_models.outcomes import Receipt
from oncebox_models.states import DEFINITE_STATES, FINAL_STATES, Reason, State, Wanted
from oncebox_outbox import statements, wording
from oncebox_outbox.edge import database_errors, on_connection

Transaction = Session | Connection
"""The caller's transaction: a Session or a Connection. Never committed, never flushed by us."""


@dataclass(frozen=True, slots=True)
class OperationStatus:
    """One operation as the database says it was at `as_of` (the database's clock).

    state: what is known. definite: saved, refused and not_saved never change.
    reason: why it ended, or the last call's outcome. problem: the receiver's own words on a refusal.
    attempts: send calls that may have reached the receiver; None once settled.
    next_at: when the next call is due; None when settled or under way.
    """

    id: UUID
    tenant: str
    principal: str
    destination: str
    operation_id: str
    kind: str
    args_hash: str
    run: str
    step: str
    purpose: str
    state: State
    reason: str | None
    receipt: Receipt | None
    problem: dict[str, object] | None
    wanted: Wanted | None
    attempts: int | None
    unanswered: int | None
    next_at: datetime | None
    deadline: datetime
    created_at: datetime
    settled_at: datetime | None
    supersedes: UUID | None
    as_of: datetime

    @property
    def definite(self) -> bool:
        return self.state in DEFINITE_STATES

    @property
    def final(self) -> bool:
        """No call will change it by itself any more (`needs_review` waits for a person)."""
        return self.state in FINAL_STATES

    @property
    def say(self) -> str:
        """One honest sentence, beginning with the decisive words."""
        return wording.say(
            self.state, self.operation_id, self.reason, self.receipt, self.problem, self.wanted
        )


def find(
    transaction: Transaction,
    identifier: str,
    *,
    tenant: str | None = None,
    principal: str | None = None,
    destination: str | None = None,
) -> list[OperationStatus]:
    """Operations by the caller's operation_id or by our UUID, narrowed by what is given; at most 20."""
    if wrong_operation_id(identifier):
        return []
    with database_errors():
        rows = on_connection(transaction).execute(
            statements.FIND,
            {
                "operation_id": identifier,
                "id": _uuid_or_none(identifier),
                "tenant": tenant,
                "principal": principal,
                "destination": destination,
            },
        )
        return [from_row(row) for row in rows]


def from_row(row: Row[*tuple[object, ...]]) -> OperationStatus:
    """A status from a row of `statements.FIND` or one of the lists."""
    state = State(row.state)
    live = row.wanted is not None
    return OperationStatus(
        id=row.id,
        tenant=row.tenant,
        principal=row.principal,
        destination=row.destination,
        operation_id=row.operation_id,
        kind=row.kind,
        args_hash=row.args_hash,
        run=row.run,
        step=row.step,
        purpose=row.purpose,
        state=state,
        reason=row.reason or row.review or row.wanted_reason or row.last_reason or _unseen(row),
        receipt=Receipt.parse(row.receipt) if row.receipt else None,
        problem=row.problem or row.refusal,
        wanted=Wanted(row.wanted) if live else None,
        attempts=row.attempts,
        unanswered=row.unanswered,
        next_at=row.ready_at if live and not row.under_way else None,
        deadline=row.deadline,
        created_at=row.created_at,
        settled_at=row.settled_at,
        supersedes=row.supersedes,
        as_of=row.as_of,
    )


def _unseen(row: Row[*tuple[object, ...]]) -> str | None:
    return Reason.RECEIVER_NEVER_SEEN if row.receiver_unseen else None


def _uuid_or_none(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
