"""Everything the outbox raises.

OutboxError
├── InvalidOperation          the input is wrong; `.faults` lists all of it
│   └── UnknownDestination    ... among them a destination that is not registered
├── ArgumentConflict          the identity exists with other arguments
├── OperationNotFound         no operation has that identity
├── SchemaMissing             the tables are not there, or not at this version
└── RetryTransaction          a race was lost; roll back and run the transaction again
"""

from collections.abc import Sequence

from oncebox_models.arguments import Fault
from oncebox_models.states import State


class OutboxError(Exception):
    """Base of all errors raised by the outbox."""


class InvalidOperation(OutboxError):
    """The operation cannot be accepted. Nothing was written; the caller's transaction stays usable."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__("; ".join(str(fault) for fault in self.faults))


class UnknownDestination(InvalidOperation):
    """No destination of that name is registered (among possibly other faults)."""


class ArgumentConflict(OutboxError):
    """The identity exists already, with other arguments. Nothing was written or sent.

    An edit is a new operation: revise the note under a new operation_id.
    """

    def __init__(self, operation_id: str, state: State) -> None:
        self.operation_id = operation_id
        self.state = state
        super().__init__(
            f"operation {operation_id!r} exists with other arguments (it is {state}); "
            "an edit is a new operation: revise the note, or enqueue under a new operation_id"
        )


class OperationNotFound(OutboxError):
    """No operation has that identity."""

    def __init__(self, operation_id: str) -> None:
        self.operation_id = operation_id
        super().__init__(f"no operation {operation_id!r}; list them with: oncebox list")


class SchemaMissing(OutboxError):
    """The schema `oncebox` is missing from this database, or is older than this code."""

    def __init__(self, detail: str) -> None:
        super().__init__(
            f"the tables of schema oncebox are not in this database ({detail}); create them with: oncebox migrate up"
        )


class RetryTransaction(OutboxError):
    """The database chose another transaction over this one. Roll back and run the whole transaction again."""

    def __init__(self, detail: str) -> None:
        super().__init__(
            f"this transaction lost a race ({detail}); roll it back and run it again from the start"
        )
