"""From an error of the outbox to a failure of a command."""

from oncebox_operate import failures
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.failures import Failure
from oncebox_outbox import (
    ArgumentConflict,
    InvalidOperation,
    OperationNotFound,
    RetryTransaction,
    SchemaMissing,
    UnknownDestination,
)


def of_outbox(error: Exception) -> Failure | None:
    """An error of the outbox as a failure of a command; None for any other exception."""
    match error:
        case UnknownDestination():
            hint = "A destination becomes known when a worker for it starts; see: oncebox worker --help"
            return Failure(ExitCode.USAGE, "invalid_operation", _nothing_written(error), hint, error.faults)
        case InvalidOperation():
            return Failure(ExitCode.USAGE, "invalid_operation", _nothing_written(error), faults=error.faults)
        case ArgumentConflict():
            hint = f"See what is held under this id: oncebox show {error.operation_id}"
            return Failure(ExitCode.CONFLICT, "argument_conflict", _sentence(str(error)), hint)
        case OperationNotFound():
            return failures.not_found(error.operation_id)
        case SchemaMissing():
            return Failure(
                ExitCode.ERROR,
                "schema_missing",
                "The sender's database has no tables of Oncebox, or older ones.",
                "Create or upgrade them: oncebox migrate up",
            )
        case RetryTransaction():
            return Failure(
                ExitCode.ERROR,
                "race_lost",
                "Another transaction came first; nothing was written.",
                "Run it again.",
            )
        case _:
            return None


def _nothing_written(error: InvalidOperation) -> str:
    count = len(error.faults)
    return f"Nothing was written: {'one thing is' if count == 1 else f'{count} things are'} wrong."


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."
