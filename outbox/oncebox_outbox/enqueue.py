"""Committing the wish to write: check, freeze, insert in the caller's transaction, classify what was there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import Connection
from uuid_utils.compat import uuid7

from oncebox_models.arguments import Fault, Kind, check_arguments
from oncebox_models.canonical import args_hash, canonical_arguments
from oncebox_models.names import wrong_label, wrong_operation_id, wrong_party
from oncebox_models.outcomes import Receipt
from oncebox_models.states import State, Wanted
from oncebox_outbox import statements, wording
from oncebox_outbox.edge import database_errors
from oncebox_outbox.errors import ArgumentConflict, InvalidOperation, UnknownDestination
from oncebox_outbox.intents import Intent, derived_operation_id
from oncebox_outbox.policy import DEFAULT_ADMISSION_WINDOW_S, DEFAULT_DEADLINE_S

FAR_AHEAD_S: Final = 1e10
"""Beyond the window of every receiver, in seconds. Much longer does not fit the database's interval."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write wanted once: an item of `enqueue_many`.

    operation_id: the caller's name for it; None derives one from (run, step, kind).
    deadline: an aware datetime, or how long from now; None means 72 hours, or all that the receiver admits if that is less.
    ordering_key: writes with the same key are delivered one after another, in commit order.
    supersedes: the UUID of an operation that this one replaces.
    """

    intent: Intent
    arguments: Mapping[str, object]
    kind: str = Kind.NOTE_CREATE
    operation_id: str | None = None
    deadline: datetime | timedelta | None = None
    ordering_key: str | None = None
    supersedes: UUID | None = None


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


@dataclass(frozen=True, slots=True)
class Party:
    """For whom and to where: the scope of an operation's identity."""

    tenant: str
    principal: str
    destination: str

    def faults(self) -> list[Fault]:
        named = (("tenant", self.tenant), ("principal", self.principal), ("destination", self.destination))
        return [Fault(name, wrong) for name, value in named if (wrong := wrong_party(value))]


@dataclass(frozen=True, slots=True)
class _Item:
    """A write whose bytes are frozen."""

    id: UUID
    operation_id: str
    arguments: str
    args_hash: str
    write: Write


def enqueue_all(
    connection: Connection, party: Party, writes: Sequence[Write]
) -> list[Enqueued | InvalidOperation | ArgumentConflict]:
    """Insert all valid writes in one statement; an outcome for each, in the order given.

    One round trip when all are new (one more when an ordering key is used, or when something existed).
    """
    party_faults = party.faults()
    frozen = [_freeze(party_faults, write) for write in writes]
    items = [item for item in frozen if isinstance(item, _Item)]
    with database_errors():
        created = _insert(connection, party, items) if items else set[UUID]()
        left = [item for item in items if item.id not in created]
        found = _existing(connection, party, left)
        refused = (
            _admission(connection, party, writes)
            if len(left) > len(found) or len(items) < len(frozen)
            else None
        )
    return [_outcome(item, created, found, refused) for item in frozen]


def _freeze(party_faults: list[Fault], write: Write) -> "_Item | tuple[Write, list[Fault]]":
    faults = [*party_faults, *write.intent.faults()]
    arguments, wrong_arguments = check_arguments(write.kind, write.arguments)
    faults += wrong_arguments
    if write.operation_id is not None and (wrong := wrong_operation_id(write.operation_id)):
        faults.append(Fault("operation_id", wrong))
    if write.ordering_key is not None and (wrong := wrong_label(write.ordering_key)):
        faults.append(Fault("ordering_key", wrong))
    faults += _deadline_faults(write.deadline)
    faults += _supersedes_faults(write.supersedes)
    if faults:
        return write, faults
    canonical = canonical_arguments(arguments)
    operation_id = (
        write.operation_id
        if write.operation_id is not None
        else derived_operation_id(write.intent, write.kind)
    )
    return _Item(uuid7(), operation_id, canonical, args_hash(write.kind, canonical), write)


def _deadline_faults(deadline: object) -> list[Fault]:
    """What is wrong with a deadline whatever the time; the database's clock judges the rest."""
    match deadline:
        case None:
            return []
        case timedelta():
            past = deadline <= timedelta(0)
            return (
                [Fault("deadline", f"{deadline} is not in the future; give a positive duration")]
                if past
                else []
            )
        case datetime() if deadline.tzinfo is None:
            return [
                Fault(
                    "deadline",
                    f"{deadline.isoformat()} has no time zone; use an aware datetime or a timedelta",
                )
            ]
        case datetime():
            return []
        case _:
            return [Fault("deadline", f"must be a datetime or timedelta, got {type(deadline).__name__}")]


def _supersedes_faults(supersedes: object) -> list[Fault]:
    match supersedes:
        case None | UUID():
            return []
        case _:
            return [Fault("supersedes", f"must be a UUID, got {type(supersedes).__name__}")]


def _insert(connection: Connection, party: Party, items: Sequence[_Item]) -> set[UUID]:
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


def _existing(connection: Connection, party: Party, left: Sequence[_Item]) -> dict[str, _Existing]:
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


@dataclass(frozen=True, slots=True)
class _Admission:
    """Why the guards of ENQUEUE let nothing through: read only when something was refused."""

    now: datetime
    window_s: float | None
    destinations: list[str]
    superseded: frozenset[UUID]


def _admission(connection: Connection, party: Party, writes: Sequence[Write]) -> _Admission:
    # A name that cannot be one (it may hold a NUL) is not looked up; its own fault is told already.
    tenant, principal, name = (
        "" if wrong_party(value) else value for value in (party.tenant, party.principal, party.destination)
    )
    row = connection.execute(
        statements.ADMISSION,
        {
            "tenant": tenant,
            "principal": principal,
            "destination": name,
            "window_s": DEFAULT_ADMISSION_WINDOW_S,
            "supersedes": [write.supersedes for write in writes if not _supersedes_faults(write.supersedes)],
        },
    ).one()
    return _Admission(row.now, row.window_s, list(row.destinations), frozenset(row.superseded))


def _outcome(
    item: "_Item | tuple[Write, list[Fault]]",
    created: set[UUID],
    found: Mapping[str, _Existing],
    admission: _Admission | None,
) -> Enqueued | InvalidOperation | ArgumentConflict:
    if not isinstance(item, _Item):
        write, faults = item
        return _invalid(write, faults, admission)
    if item.id in created:
        return Enqueued(item.id, item.operation_id, True, State.PENDING, None)
    held = found.get(item.operation_id)
    if held is None:
        return _invalid(item.write, [], admission)
    if held.args_hash != item.args_hash:
        return ArgumentConflict(item.operation_id, held.state)
    return Enqueued(
        held.id, item.operation_id, False, held.state, held.receipt, held.reason, held.problem, held.wanted
    )


def _invalid(write: Write, faults: list[Fault], admission: _Admission | None) -> InvalidOperation:
    if admission is None:
        raise RuntimeError("a write was neither inserted, found nor refused; please report this")
    faults = [*faults, *_missing_faults(write, admission)]
    if admission.window_s is None:
        known = ", ".join(admission.destinations) or "none"
        missing = Fault("destination", f"is not registered; registered destinations: {known}")
        return UnknownDestination(
            [*faults, missing, *_window_faults(write, admission.now, DEFAULT_ADMISSION_WINDOW_S)]
        )
    faults += _window_faults(write, admission.now, admission.window_s)
    edge = Fault("deadline", "is at the very edge of what the receiver admits; give a little less")
    return InvalidOperation(faults or [edge])


def _missing_faults(write: Write, admission: _Admission) -> list[Fault]:
    match write.supersedes:
        case UUID() if write.supersedes not in admission.superseded:
            message = f"no operation {write.supersedes} of this tenant and principal exists"
            return [Fault("supersedes", message)]
        case _:
            return []


def _window_faults(write: Write, now: datetime, window_s: float) -> list[Fault]:
    match write.deadline:
        case datetime() if write.deadline.tzinfo is not None:
            ahead_s = (write.deadline - now).total_seconds()
        case timedelta():
            ahead_s = write.deadline.total_seconds()
        case _:
            return []
    if ahead_s > window_s:
        return [
            Fault(
                "deadline",
                f"is {ahead_s / 3600:.1f} h ahead; the receiver admits at most {window_s / 3600:.1f} h",
            )
        ]
    if ahead_s <= 0 and isinstance(write.deadline, datetime):
        return [
            Fault(
                "deadline",
                f"{write.deadline.isoformat()} is past; by the database's clock it is {now.isoformat()}",
            )
        ]
    return []
