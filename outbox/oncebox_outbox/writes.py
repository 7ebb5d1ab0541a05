"""A write as the caller wants it, and frozen: checked whatever the time, its bytes and identity fixed. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from uuid_utils.compat import uuid7

from oncebox_models.arguments import Fault, Kind, check_arguments
from oncebox_models.canonical import args_hash, canonical_arguments
from oncebox_models.names import wrong_label, wrong_operation_id, wrong_party
from oncebox_outbox.intents import Intent, derived_operation_id


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
class Party:
    """For whom and to where: the scope of an operation's identity."""

    tenant: str
    principal: str
    destination: str

    def faults(self) -> list[Fault]:
        named = (("tenant", self.tenant), ("principal", self.principal), ("destination", self.destination))
        return [Fault(name, wrong) for name, value in named if (wrong := wrong_party(value))]


@dataclass(frozen=True, slots=True)
class Frozen:
    """A write whose bytes are frozen."""

    id: UUID
    operation_id: str
    arguments: str
    args_hash: str
    write: Write


@dataclass(frozen=True, slots=True)
class Faulty:
    """A write that is refused, with what is known to be wrong before the database is asked."""

    write: Write
    faults: tuple[Fault, ...]


def freeze(party_faults: list[Fault], write: Write) -> Frozen | Faulty:
    """The write with its bytes fixed, or all that is wrong with it."""
    faults = [*party_faults, *_intent_faults(write.intent)]
    arguments, wrong_arguments = check_arguments(write.kind, write.arguments)
    faults += wrong_arguments
    if write.operation_id is not None and (wrong := wrong_operation_id(write.operation_id)):
        faults.append(Fault("operation_id", wrong))
    if write.ordering_key is not None and (wrong := wrong_label(write.ordering_key)):
        faults.append(Fault("ordering_key", wrong))
    faults += _deadline_faults(write.deadline)
    faults += supersedes_faults(write.supersedes)
    if faults:
        return Faulty(write, tuple(faults))
    canonical = canonical_arguments(arguments)
    operation_id = (
        write.operation_id
        if write.operation_id is not None
        else derived_operation_id(write.intent, write.kind)
    )
    return Frozen(uuid7(), operation_id, canonical, args_hash(write.kind, canonical), write)


def _intent_faults(intent: object) -> list[Fault]:
    if not isinstance(intent, Intent):
        return [Fault("intent", f"must be an Intent, got {type(intent).__name__}")]
    return intent.faults()


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
        case datetime() if deadline.utcoffset() is None:
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


def supersedes_faults(supersedes: object) -> list[Fault]:
    """What is wrong with the id of a superseded operation, before it is looked up."""
    match supersedes:
        case None | UUID():
            return []
        case _:
            return [Fault("supersedes", f"must be a UUID, got {type(supersedes).__name__}")]
