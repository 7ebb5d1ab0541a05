"""Giving an operation up: at once with proof if nothing was ever sent, else by way of the receiver's seal."""

from enum import StrEnum
from uuid import UUID

from oncebox_outbox import statements
from oncebox_outbox.edge import database_errors, on_connection
from oncebox_outbox.status import Transaction


class Cancelled(StrEnum):
    """What a cancel did."""

    SETTLED = "settled"
    """Nothing was ever sent: it is not saved, and never will be."""
    SEALING = "sealing"
    """Something was sent: the receiver is asked to close the key; it may prove saved."""
    NOTHING = "nothing"
    """It was settled or given up already."""


def cancel(transaction: Transaction, id: UUID) -> Cancelled:
    """Cancel the operation with our UUID `id`, in the caller's transaction."""
    with database_errors():
        row = on_connection(transaction).execute(statements.CANCEL, {"id": id}).one()
    if row.settled:
        return Cancelled.SETTLED
    return Cancelled.SEALING if row.abandoned else Cancelled.NOTHING
