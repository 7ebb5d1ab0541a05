"""Committing the wish to write: insert in the caller's transaction, and classify what was there already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import Connection

from oncebox_models.outcomes import Receipt
from oncebox_models.states import State, Wanted
from oncebox_outbox import statements, wording
from oncebox_outbox.admission import Admission, read_admission, refusal
from oncebox_outbox.edge import database_errors
from oncebox_outbox.errors import ArgumentConflict, InvalidOperation
from oncebox_outbox.policy import DEFAULT_ADMISSION_WINDOW_S, DEFAULT_DEADLINE_S
from oncebox_outbox.writes import Faulty, Frozen, Party, Write, freeze

FAR_AHEAD_S: Final = 1e10
"""Beyond the window of every receiver, in seconds. Much longer does not fit the database's interval."""


@dataclass(frozen=True, slots=True)
class Enqueued:
    """What the outbox holds for a write once the caller commits.

    created: False when the operation existed already, with equal arguments: nothing new will be sent.
    state and receipt are those of the existing operation then.
    """

    id: UUID
    operation_id: str
    created: bool
    state: State
    receipt: Receipt | None
    reason: str | None = None
    problem: Mapping[str, object] | None = None
    wanted: Wanted | None = None
    """What is to become of an existing operation that is still live."""

    @property
    def say(self) -> str:
        """One sentence: what is held, and for a refused or unsaved one what to do."""
        if self.created:
            return f"Enqueued: {self.operation_id} will be delivered once this transaction is committed."
        told = wording.say(
            self.state, self.operation_id, self.reason, self.receipt, self.problem, self.wanted
        )
        return f"Exists already; nothing more is sent. {told}"


def enqueue_all(
    connection: Connection, party: Party, writes: Sequence[Write]
) -> list[Enqueued | InvalidOperation | ArgumentConflict]:
    """Insert all valid writes in one statement; an outcome for each, in the order given.

    One round trip when all are new (one more when an ordering key is used, or when something existed).
    """
    party_faults = party.faults()
    frozen = [freeze(party_faults, write) for write in writes]
    items = [item for item in frozen if isinstance(item, Frozen)]
    with database_errors():
        created = _insert(connection, party, items) if items else set[UUID]()
        left = [item for item in items if item.id not in created]
        found = _existing(connection, party, left)
        admission = (
            read_admission(connection, party, writes)
            if len(left) > len(found) or len(items) < len(frozen)
            else None
        )
    return [_outcome(item, created, found, admission) for item in frozen]


def _insert(connection: Connection, party: Party, items: Sequence[Frozen]) -> set[UUID]:
    keys = [_scoped(party, item.write.ordering_key) for item in items]
    if any(keys):
        connection.execute(statements.LOCK_ORDERING_KEYS, {"keys": [key for key in keys if key]})
    intents = [item.write.intent for item in items]
    deadlines = [item.write.deadline for item in items]
    rows = connection.execute(
        statements.ENQUEUE,
        {
            "tenant": party.tenant,
            "principal": party.principal,
            "destination": party.destination,
            "window_s": DEFAULT_ADMISSION_WINDOW_S,
            "default_s": DEFAULT_DEADLINE_S,
            "positions": list(range(len(items))),
            "ids": [item.id for item in items],
            "operation_ids": [item.operation_id for item in items],
            "intent_ids": [intent.id(party.tenant, party.principal) for intent in intents],
            "runs": [intent.run for intent in intents],
            "steps": [intent.step for intent in intents],
            "purposes": [intent.purpose for intent in intents],
            "contexts": [intent.context_json for intent in intents],
            "trace_contexts": [intent.trace_context_json for intent in intents],
            "kinds": [str(item.write.kind) for item in items],
            "arguments": [item.arguments for item in items],
            "args_hashes": [item.args_hash for item in items],
            "ordering_keys": keys,
            "deadlines": [deadline if isinstance(deadline, datetime) else None for deadline in deadlines],
            "deadlines_s": [
                min(deadline.total_seconds(), FAR_AHEAD_S) if isinstance(deadline, timedelta) else None
                for deadline in deadlines
            ],
            "supersedes": [item.write.supersedes for item in items],
        },
    )
    return {row.id for row in rows}


def _scoped(party: Party, key: str | None) -> str | None:
    return None if key is None else f"{party.tenant}/{party.principal}/{key}"


@dataclass(frozen=True, slots=True)
class _Existing:
    id: UUID
    args_hash: str
    state: State
    receipt: Receipt | None
    reason: str | None
    problem: Mapping[str, object] | None
    wanted: Wanted | None


def _existing(connection: Connection, party: Party, left: Sequence[Frozen]) -> dict[str, _Existing]:
    if not left:
        return {}
    rows = connection.execute(
        statements.EXISTING,
        {
            "operation_ids": [item.operation_id for item in left],
            "tenant": party.tenant,
            "principal": party.principal,
            "destination": party.destination,
        },
    )
    return {
        row.operation_id: _Existing(
            row.id,
            row.args_hash,
            State(row.state),
            Receipt.parse(row.receipt) if row.receipt else None,
            row.reason,
            row.problem,
            Wanted(row.wanted) if row.wanted is not None else None,
        )
        for row in rows
    }


def _outcome(
    item: Frozen | Faulty, created: set[UUID], found: Mapping[str, _Existing], admission: Admission | None
) -> Enqueued | InvalidOperation | ArgumentConflict:
    match item:
        case Faulty():
            return _refusal(item, admission)
        case Frozen() if item.id in created:
            return Enqueued(item.id, item.operation_id, True, State.PENDING, None)
        case Frozen():
            held = found.get(item.operation_id)
    if held is None:
        return _refusal(Faulty(item.write, ()), admission)
    if held.args_hash != item.args_hash:
        return ArgumentConflict(item.operation_id, held.state)
    return Enqueued(
        held.id, item.operation_id, False, held.state, held.receipt, held.reason, held.problem, held.wanted
    )


def _refusal(item: Faulty, admission: Admission | None) -> InvalidOperation:
    if admission is None:
        raise RuntimeError("a write was neither inserted, found nor refused; please report this")
    return refusal(item, admission)
