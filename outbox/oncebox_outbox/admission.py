"""Why a write was not admitted: read only when something was refused, so that a good write costs no look-up."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection

from oncebox_models.arguments import Fault
from oncebox_models.names import wrong_party
from oncebox_outbox import statements
from oncebox_outbox.errors import InvalidOperation, UnknownDestination
from oncebox_outbox.policy import DEFAULT_ADMISSION_WINDOW_S
from oncebox_outbox.writes import Faulty, Party, Write, supersedes_faults


@dataclass(frozen=True, slots=True)
class Admission:
    """What the guards of ENQUEUE looked at. window_s None: the destination is not registered."""

    now: datetime
    window_s: float | None
    destinations: list[str]
    superseded: frozenset[UUID]


def read_admission(connection: Connection, party: Party, writes: Sequence[Write]) -> Admission:
    """Read it, by the database's clock."""
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
            "supersedes": [write.supersedes for write in writes if not supersedes_faults(write.supersedes)],
        },
    ).one()
    return Admission(row.now, row.window_s, list(row.destinations), frozenset(row.superseded))


def refusal(item: Faulty, admission: Admission) -> InvalidOperation:
    """The error that names every fault: those known before, and those that only the database could tell."""
    write = item.write
    faults = [*item.faults, *_missing_faults(write, admission)]
    if admission.window_s is None:
        known = ", ".join(admission.destinations) or "none"
        missing = Fault("destination", f"is not registered; registered destinations: {known}")
        return UnknownDestination(
            [*faults, missing, *_window_faults(write, admission.now, DEFAULT_ADMISSION_WINDOW_S)]
        )
    faults += _window_faults(write, admission.now, admission.window_s)
    edge = Fault("deadline", "is at the very edge of what the receiver admits; give a little less")
    return InvalidOperation(faults or [edge])


def _missing_faults(write: Write, admission: Admission) -> list[Fault]:
    match write.supersedes:
        case UUID() if write.supersedes not in admission.superseded:
            message = f"no operation {write.supersedes} of this tenant and principal exists"
            return [Fault("supersedes", message)]
        case _:
            return []


def _window_faults(write: Write, now: datetime, window_s: float) -> list[Fault]:
    match write.deadline:
        case datetime() if write.deadline.utcoffset() is not None:
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
