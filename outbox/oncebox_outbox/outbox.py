"""The outbox as an agent uses it: a frozen value that writes into the caller's own transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Engine

from oncebox_models.arguments import Kind
from oncebox_outbox import cancelling, status, waiting
from oncebox_outbox.edge import on_connection
from oncebox_outbox.enqueue import Enqueued, enqueue_all
from oncebox_outbox.errors import ArgumentConflict, InvalidOperation, OperationNotFound
from oncebox_outbox.intents import Intent
from oncebox_outbox.status import OperationStatus, Transaction
from oncebox_outbox.writes import Party, Write


@dataclass(frozen=True, slots=True)
class Outbox:
    """Who writes, and to where. Holds no connection and reads no environment; share it freely.

    Every method that takes `session` works in the caller's transaction: it never commits and never flushes the
    caller's objects. Broker, workers and receiver need not be up.
    """

    tenant: str
    principal: str
    destination: str = "notes"

    def save_note(
        self,
        session: Transaction,
        intent: Intent,
        *,
        folder: str,
        title: str,
        text: str,
        format: str = "markdown",
        operation_id: str | None = None,
        deadline: datetime | timedelta | None = None,
        ordering_key: str | None = None,
        supersedes: UUID | None = None,
    ) -> Enqueued:
        """Want one new note. See `enqueue` for what is raised."""
        arguments = {"folder": folder, "title": title, "text": text, "format": format}
        return self.enqueue(
            session,
            Write(intent, arguments, Kind.NOTE_CREATE, operation_id, deadline, ordering_key, supersedes),
        )

    def revise_note(
        self,
        session: Transaction,
        intent: Intent,
        *,
        note_id: str,
        if_match: str,
        title: str,
        text: str,
        format: str = "markdown",
        operation_id: str | None = None,
        deadline: datetime | timedelta | None = None,
        ordering_key: str | None = None,
        supersedes: UUID | None = None,
    ) -> Enqueued:
        """Want one new version of a note, if it still is at the version whose etag is `if_match`."""
        arguments = {"note_id": note_id, "if_match": if_match, "title": title, "text": text, "format": format}
        return self.enqueue(
            session,
            Write(intent, arguments, Kind.NOTE_REVISE, operation_id, deadline, ordering_key, supersedes),
        )

    def enqueue(self, session: Transaction, write: Write) -> Enqueued:
        """Put one write into the outbox. It is delivered once the caller commits, and only then.

        Raises InvalidOperation (all faults at once), UnknownDestination, ArgumentConflict (the identity exists with
        other arguments), SchemaMissing, RetryTransaction. After the first three the transaction stays usable.

        Two transactions that write the same identity, the same (run, step) or the same ordering key wait for each
        other's commit. Two that write several of them one by one in opposite orders are a deadlock, which ends as
        RetryTransaction; `enqueue_many` takes them in one order and has none. Under SERIALIZABLE the caller's own
        commit can be refused, too (SQLSTATE 40001): run the transaction again, as after RetryTransaction.
        """
        (outcome,) = self.enqueue_many(session, [write])
        match outcome:
            case Enqueued():
                return outcome
            case InvalidOperation() | ArgumentConflict():
                raise outcome

    def enqueue_many(
        self, session: Transaction, writes: Sequence[Write]
    ) -> list[Enqueued | InvalidOperation | ArgumentConflict]:
        """Put many writes into the outbox in one round trip; an outcome for each, in the order given.

        Refusals are returned here, not raised: the valid ones are inserted. Raises SchemaMissing and RetryTransaction.
        """
        return enqueue_all(on_connection(session), self._party, writes)

    def status(self, session: Transaction, operation_id: str) -> OperationStatus:
        """What is known of an operation. Raises OperationNotFound."""
        # A name may look like the UUID of another operation: only the name counts here.
        found = status.find(session, operation_id, **self._scope)
        named = [operation for operation in found if operation.operation_id == operation_id]
        if not named:
            raise OperationNotFound(operation_id)
        return named[0]

    def cancel(self, session: Transaction, operation_id: str) -> OperationStatus:
        """Ask that an operation never happens. At once if nothing was sent; else it is sealed, and may prove saved.

        Raises OperationNotFound. A settled operation is left as it is.
        """
        cancelling.cancel(session, self.status(session, operation_id).id)
        return self.status(session, operation_id)

    def wait(self, engine: Engine, operation_id: str, *, timeout: float) -> OperationStatus:
        """Wait until an operation is settled, at most `timeout` seconds, and say what is known then.

        Uses a connection of its own and holds no transaction. Raises OperationNotFound.
        """
        return waiting.wait(engine, operation_id, timeout_s=timeout, scope=self._scope)

    @property
    def _party(self) -> Party:
        return Party(self.tenant, self.principal, self.destination)

    @property
    def _scope(self) -> "Mapping[str, str]":
        return {"tenant": self.tenant, "principal": self.principal, "destination": self.destination}
