"""Making live operations due now, for a person who does not want to wait for the schedule. Nothing is spent by it."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from oncebox_models.states import CallKind
from oncebox_outbox import statements
from oncebox_outbox.edge import database_errors, on_connection
from oncebox_outbox.status import Transaction


class Prompted(StrEnum):
    """What a retry did."""

    DUE = "due"
    """The next call is due now."""
    UNDER_WAY = "under_way"
    """A call holds the lease: it is left alone."""
    SETTLED = "settled"
    """There is no next call: it is settled."""


@dataclass(frozen=True, slots=True)
class Retried:
    """What a retry did. The rest says what the next call waits for; it is empty when the operation is settled.

    next_call: its kind. behind: an earlier operation of its ordering key comes first. receiver_seen: False when
    nothing is claimed, because no worker has reached the receiver yet.
    """

    did: Prompted
    next_call: CallKind | None = None
    behind: bool = False
    receiver_seen: bool = True


def retry(transaction: Transaction, id: UUID) -> Retried:
    """Make the operation with our UUID `id` due now, in the caller's transaction, unless a call is under way."""
    with database_errors():
        row = on_connection(transaction).execute(statements.RETRY, {"id": id}).one_or_none()
    if row is None:
        return Retried(Prompted.SETTLED)
    did = Prompted.DUE if row.free else Prompted.UNDER_WAY
    return Retried(did, CallKind(row.next_call), row.behind, row.receiver_seen)


@dataclass(frozen=True, slots=True)
class Reconciled:
    """How many operations are asked about now: of unknown outcome, and those whose access was lost."""

    unknown: int
    access_lost: int

    @property
    def asked(self) -> int:
        return self.unknown + self.access_lost


def reconcile(
    transaction: Transaction,
    *,
    id: UUID | None = None,
    tenant: str | None = None,
    principal: str | None = None,
    destination: str | None = None,
) -> Reconciled:
    """Have the receiver asked now about operations whose outcome is unknown or whose access was lost.

    Narrowed by what is given. One statement in the caller's transaction; it waits for nobody: those that a worker
    holds are being asked already. What is known of an operation does not change by it, only by the answer.
    """
    parameters = {"id": id, "tenant": tenant, "principal": principal, "destination": destination}
    with database_errors():
        row = on_connection(transaction).execute(statements.RECONCILE, parameters).one()
    return Reconciled(row.unknown, row.access_lost)
