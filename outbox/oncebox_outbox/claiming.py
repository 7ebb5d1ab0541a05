"""Taking due entries: the relay's stamp, and a worker's claim, which counts the attempt before anything is sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Engine
from uuid_utils.compat import uuid7

from oncebox_models.arguments import Kind
from oncebox_models.calls import Outgoing
from oncebox_models.outcomes import SEND_ALONE
from oncebox_models.states import CallKind, Wanted
from oncebox_outbox import statements
from oncebox_outbox.edge import database_errors
from oncebox_outbox.policy import Policy
from oncebox_outbox.rules import Claimed


@dataclass(frozen=True, slots=True)
class Due:
    """One entry that the relay stamped and must now publish (or take the stamp back).

    alone: it may be poison, or its last request was refused as a whole, so no other entry shares its message.
    """

    id: UUID
    destination: str
    kind: CallKind
    alone: bool
    ready_at: datetime
    dispatched_at: datetime


def dispatch(engine: Engine, policy: Policy, *, low_mark: datetime | None, limit: int) -> list[Due]:
    """Stamp at most `limit` due entries as dispatched, oldest first from `low_mark` on, and commit.

    `low_mark` None scans from the beginning. Publish after this returns; what could not be published goes to
    `undispatch`, and a stamp older than `policy.redispatch_s` counts as none, so a crash in between costs only time.
    """
    with engine.connect() as connection, database_errors():
        rows = connection.execute(
            statements.DISPATCH,
            {
                "low_mark": low_mark or "-infinity",
                "redispatch_s": policy.redispatch_s,
                "limit": limit,
                "send_alone": list(SEND_ALONE),
            },
        ).all()
    due = [
        Due(row.id, row.destination, CallKind(row.kind), row.alone, row.ready_at, row.dispatched_at)
        for row in rows
    ]
    return sorted(due, key=lambda entry: entry.ready_at)


def undispatch(engine: Engine, ids: Sequence[UUID], dispatched_at: datetime) -> int:
    """Take back the stamp of entries whose message was not accepted; returns how many still had it."""
    with engine.connect() as connection, database_errors():
        return connection.execute(
            statements.UNDISPATCH, {"ids": list(ids), "dispatched_at": dispatched_at}
        ).rowcount


@dataclass(frozen=True, slots=True)
class ClaimedOperation:
    """An operation under our lease: what to send, and what the rules need to know."""

    outgoing: Outgoing
    entry: Claimed


@dataclass(frozen=True, slots=True)
class Call:
    """One request to make: its id is the lease token of its operations."""

    call_id: UUID
    kind: CallKind
    destination: str
    operations: tuple[ClaimedOperation, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a claim got: at most one call of each kind. `lapsed` counts leases of others that had run out."""

    calls: tuple[Call, ...]
    lapsed: int


def claim(engine: Engine, policy: Policy, destination: str, ids: Sequence[UUID], *, worker: str) -> Claim:
    """Claim what is still due among `ids`; live leases, settled ones and those not due fall out. Committed on return."""
    call_ids = {kind: uuid7() for kind in (CallKind.SEND, CallKind.STATUS, CallKind.SEAL)}
    with engine.connect() as connection, database_errors():
        rows = connection.execute(
            statements.CLAIM,
            {
                "ids": list(ids),
                "destination": destination,
                "kinds": [str(kind) for kind in Kind],
                "poison_claims": policy.poison_claims,
                "lease_s": policy.lease_s,
                "worker": worker,
                "send_call": call_ids[CallKind.SEND],
                "status_call": call_ids[CallKind.STATUS],
                "seal_call": call_ids[CallKind.SEAL],
            },
        ).all()
    calls: dict[CallKind, list[ClaimedOperation]] = {}
    for row in rows:
        outgoing = Outgoing(
            row.id,
            row.operation_id,
            row.tenant,
            row.principal,
            row.operation_kind,
            row.arguments,
            row.args_hash,
            row.deadline,
        )
        entry = Claimed(
            row.args_hash,
            Wanted(row.wanted),
            row.wanted_reason,
            row.attempts,
            row.unanswered,
            row.retries,
            row.last_outcome,
        )
        calls.setdefault(CallKind(row.kind), []).append(ClaimedOperation(outgoing, entry))
    return Claim(
        tuple(
            Call(call_ids[kind], kind, destination, tuple(operations)) for kind, operations in calls.items()
        ),
        rows[0].lapsed if rows else 0,
    )
