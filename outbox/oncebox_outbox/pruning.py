"""Forgetting what need not be kept: arguments, contexts and calls of settled operations, in small batches."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Engine

from oncebox_outbox import statements
from oncebox_outbox.edge import database_errors


@dataclass(frozen=True, slots=True)
class Pruned:
    """How much was emptied or removed. `busy`: another prune was running, and nothing was done."""

    operations: int
    calls: int
    busy: bool = False


def prunable(engine: Engine, *, older_than_s: float) -> int:
    """How many settled operations a prune would empty."""
    with engine.connect() as connection, database_errors():
        return connection.execute(statements.PRUNABLE, {"older_than_s": older_than_s}).scalar_one()


def prune(
    engine: Engine, *, older_than_s: float, batch: int = 1_000, progress: Callable[[int], None] | None = None
) -> Pruned:
    """Empty operations settled more than `older_than_s` seconds ago; identity, hash, end and receipt stay for ever.

    One prune at a time (a try-lock), each batch its own transaction. `engine` commits each statement by itself.
    """
    parameters = {"older_than_s": older_than_s, "limit": batch}
    operations = calls = 0
    with engine.connect() as connection, database_errors():
        if not connection.execute(statements.PRUNE_LOCK).scalar_one():
            return Pruned(0, 0, busy=True)
        try:
            while emptied := connection.execute(statements.PRUNE_OPERATIONS, parameters).scalar_one():
                operations += emptied
                if progress is not None:
                    progress(operations)
            while removed := connection.execute(statements.PRUNE_CALLS, parameters).rowcount:
                calls += removed
        finally:
            # A connection that was lost took the lock along, and executes nothing any more.
            if not connection.invalidated:
                connection.execute(statements.PRUNE_UNLOCK)
    return Pruned(operations, calls)
