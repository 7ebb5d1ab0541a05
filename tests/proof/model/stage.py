"""Rows of the model as rows of a real database, and back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid5

import sqlalchemy as sa

from oncebox_models import tables
from oncebox_models.calls import Outgoing
from oncebox_models.outcomes import Receipt
from oncebox_models.states import CallKind, State, Wanted
from oncebox_outbox.claiming import ClaimedOperation
from oncebox_outbox.rules import Claimed
from oncebox_outbox.statements.naming import STATE
from tests.integration.outbox.scenes import Sender
from tests.proof.model.reachable import HELD, STALE
from tests.proof.model.rows import HASH, Lease, Row
from tests.proof.model.wire import KEY

_SPACE: Final = UUID(int=4)
CALLS: Final = {HELD: uuid5(_SPACE, HELD), STALE: uuid5(_SPACE, STALE)}
_RECEIPT: Final = Receipt(KEY, HASH, {"id": "n-0"}).text
_COLUMNS: Final = (
    "attempts", "unanswered", "claims", "retries", "next_call", "wanted", "wanted_reason", "review", "calling",
    "last_outcome",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """The outbox of one sender, filled with rows of the model."""

    sender: Sender

    def fill(self, rows: Sequence[Row], *, late: bool = False) -> list[UUID]:
        """Put exactly these rows there, all with one deadline; the answer is their ids, in the same order."""
        ids = [uuid5(_SPACE, str(number)) for number in range(len(rows))]
        with self.sender.worker.connect() as connection:
            connection.execute(
                sa.text(
                    "truncate oncebox.operation, oncebox.outbox_entry, oncebox.intent, oncebox.call,"
                    " oncebox.call_outcome, oncebox.violation"
                )
            )
            now: datetime = connection.execute(sa.text("select now()")).scalar_one()
            connection.execute(
                tables.intent.insert(),
                {"id": _SPACE, "tenant": "t", "principal": "p", "run": "r", "step": "s", "purpose": "why"},
            )
            connection.execute(
                tables.call.insert(),
                [
                    {"call_id": id, "kind": "send", "destination": "notes", "worker": "w", "operations": 1}
                    for id in CALLS.values()
                ],
            )
            deadline = now + timedelta(hours=-1 if late else 1)
            connection.execute(
                tables.operation.insert(),
                [_operation(id, row, deadline, now) for id, row in zip(ids, rows, strict=True)],
            )
            live = [
                _entry(id, row, deadline, now) for id, row in zip(ids, rows, strict=True) if row.final is None
            ]
            if live:
                connection.execute(tables.outbox_entry.insert(), live)
        return ids

    def read(self, ids: Sequence[UUID]) -> list[tuple[Row, State]]:
        """The rows as they are now, with the state that people are shown."""
        found = {
            row.key: (_row(row), State(row.state))
            for row in self.sender.rows(
                f"select o.id as key, o.final, o.reason, o.receipt, e.*, e.id is not null as live_entry, {STATE} as state,"
                " e.lease_until > clock_timestamp() as held"
                " from oncebox.operation o left join oncebox.outbox_entry e on e.id = o.id"
            )
        }
        return [found[id] for id in ids]


def claimed_operation(id: UUID, entry: Claimed) -> ClaimedOperation:
    """An operation as its call holds it."""
    outgoing = Outgoing(id, KEY, str(id), "p", "note.create", "{}", HASH, datetime.max)  # noqa: DTZ901
    return ClaimedOperation(outgoing, entry)


def _operation(id: UUID, row: Row, deadline: datetime, now: datetime) -> dict[str, Any]:
    return {
        "id": id,
        "tenant": str(id),
        "principal": "p",
        "destination": "notes",
        "operation_id": KEY,
        "intent_id": _SPACE,
        "kind": "note.create",
        "arguments": "{}",
        "args_hash": HASH,
        "deadline": deadline,
        "final": row.final,
        "reason": row.reason,
        "receipt": _RECEIPT if row.receipt else None,
        "settled_at": now if row.final else None,
    }


def _entry(id: UUID, row: Row, deadline: datetime, now: datetime) -> dict[str, Any]:
    until = {
        Lease.NONE: None,
        Lease.LIVE: now + timedelta(hours=1),
        Lease.LAPSED: now - timedelta(seconds=1),
    }
    return {name: getattr(row, name) for name in _COLUMNS} | {
        "id": id,
        "destination": "notes",
        "deadline": deadline,
        "ready_at": now,
        "call_id": CALLS[row.call] if row.call else None,
        "lease_until": until[row.lease],
    }


def _row(row: sa.Row[Any]) -> Row:
    final = State(row.final) if row.final else None
    if not row.live_entry:
        return Row(final=final, reason=row.reason, receipt=row.receipt is not None)
    lease = Lease.NONE if row.lease_until is None else Lease.LIVE if row.held else Lease.LAPSED
    names = {id: name for name, id in CALLS.items()}
    return Row(
        attempts=row.attempts,
        unanswered=row.unanswered,
        claims=row.claims,
        retries=row.retries,
        next_call=CallKind(row.next_call),
        wanted=Wanted(row.wanted),
        wanted_reason=row.wanted_reason,
        review=row.review,
        # A call that the statement itself minted is that of whoever claims.
        call=None if row.call_id is None else names.get(row.call_id, HELD),
        calling=CallKind(row.calling) if row.calling else None,
        lease=lease,
        last_outcome=row.last_outcome,
        final=final,
        reason=row.reason,
        receipt=row.receipt is not None,
    )
