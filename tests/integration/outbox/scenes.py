"""A sender's database as its parties use it: the agent's transactions, a worker's claims, and the clock."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.orm import Session

from oncebox_models.calls import Capabilities
from oncebox_models.outcomes import Answer, Outcome, Receipt
from oncebox_outbox import Enqueued, Intent, OperationStatus, Outbox, Write, registry
from oncebox_outbox.claiming import Call, Claim, claim, dispatch
from oncebox_outbox.engine import worker_engine
from oncebox_outbox.policy import Policy
from oncebox_outbox.settling import Settled, settle
from tests.support.polling import eventually

OUTBOX: Final = Outbox(tenant="demo", principal="researcher", destination="notes")
WHY: Final = Intent(run="run-42", step="summarise", purpose="keep finding 7")
POLICY: Final = Policy()
READ_COMMITTED: Final = "READ COMMITTED"
SNAPSHOTS: Final = ("REPEATABLE READ", "SERIALIZABLE")
LEVELS: Final = (READ_COMMITTED, *SNAPSHOTS)


CAPABILITIES: Final = Capabilities(
    receiver="receiver-1",
    batch_items=500,
    batch_bytes=8 * 1024 * 1024,
    admission_window_s=7 * 24 * 3600.0,
    request_limit_s=30.0,
    tombstone_retention_s=8 * 24 * 3600.0,
    server_time=datetime(2026, 1, 1, tzinfo=UTC),
)


def no_jitter() -> float:
    """A random source whose delays are always 0: what is to be tried again is due at once."""
    return 0.0


def write(operation_id: str | None = "note-7", *, text: str = "Reef B", **more: Any) -> Write:
    """A `note.create` that is right in everything, but for `more`."""
    intent = more.pop("intent", WHY)
    return Write(
        intent,
        {"folder": "drafts", "title": "Finding 7", "text": text},
        operation_id=operation_id,
        **more,
    )


def receipt_for(call: Call, *, version: int = 1, operation: int = 0) -> Receipt:
    """What the receiver would answer to the operation at that position of the call."""
    outgoing = call.operations[operation].outgoing
    note = {
        "id": f"id-of-{outgoing.operation_id}",
        "folder": "drafts",
        "version": version,
        "etag": f'"{version}"',
    }
    note |= {"location": f"/v1/notes/{note['id']}"}
    return Receipt(outgoing.operation_id, outgoing.args_hash, note)


def saved(call: Call, *, version: int = 1) -> dict[UUID, Answer]:
    """A receipt for each operation of a call."""
    return {
        operation.outgoing.id: Answer(
            Outcome.RECEIPT,
            "created",
            receipt_for(call, version=version, operation=position),
            http_status=201,
        )
        for position, operation in enumerate(call.operations)
    }


def all_answer(call: Call, outcome: Outcome, reason: str = "test", **more: Any) -> dict[UUID, Answer]:
    """The same answer, without a receipt, for each operation of a call."""
    return {operation.outgoing.id: Answer(outcome, reason, **more) for operation in call.operations}


@dataclass(frozen=True, slots=True)
class Sender:
    """Engines of one sender database. `agent` has transactions, `worker` commits each statement."""

    url: str
    agent: sa.Engine
    worker: sa.Engine

    def enqueue(self, *writes: Write, outbox: Outbox = OUTBOX) -> list[Enqueued]:
        """Enqueue valid writes and commit."""
        with Session(self.agent) as session, session.begin():
            outcomes = outbox.enqueue_many(session, writes)
        enqueued = [outcome for outcome in outcomes if isinstance(outcome, Enqueued)]
        assert len(enqueued) == len(writes), outcomes
        return enqueued

    def enqueue_one(self, operation_id: str = "note-7", **more: Any) -> UUID:
        (enqueued,) = self.enqueue(write(operation_id, **more))
        return enqueued.id

    def claim(self, *ids: UUID, policy: Policy = POLICY, worker: str = "worker-1") -> Claim:
        return claim(self.worker, policy, "notes", ids, worker=worker)

    def claim_one(self, id: UUID, *, policy: Policy = POLICY, worker: str = "worker-1") -> Call:
        """Claim an operation that is due."""
        (call,) = self.claim(id, policy=policy, worker=worker).calls
        return call

    def settle(self, call: Call, answers: Mapping[UUID, Answer], policy: Policy = POLICY) -> Settled:
        return settle(self.worker, policy, call, answers, no_jitter)

    def answer(self, call: Call, outcome: Outcome, reason: str = "test", **more: Any) -> Settled:
        return self.settle(call, all_answer(call, outcome, reason, **more))

    def dispatched(self, *, limit: int = 1_000, low_mark: datetime | None = None) -> list[UUID]:
        return [due.id for due in dispatch(self.worker, POLICY, low_mark=low_mark, limit=limit)]

    def status(self, operation_id: str = "note-7", outbox: Outbox = OUTBOX) -> OperationStatus:
        with self.agent.connect() as connection:
            return outbox.status(connection, operation_id)

    def lapse(self, *ids: UUID) -> None:
        """Turn the clock past the end of these leases."""
        self.change(
            "update oncebox.outbox_entry set lease_until = now() - interval '1 s' where id = any(:ids) and call_id is not null",
            ids,
        )

    def expire(self, *ids: UUID) -> None:
        """Turn the clock past the deadline of these operations."""
        for table in ("operation", "outbox_entry"):
            self.change(
                f"update oncebox.{table} set deadline = now() - interval '1 s' where id = any(:ids)", ids
            )

    def make_due(self, *ids: UUID) -> None:
        """Turn the clock past the back-off of these entries."""
        self.change("update oncebox.outbox_entry set ready_at = now() where id = any(:ids)", ids)

    def age(self, *ids: UUID, by: timedelta) -> None:
        """Make it long ago that these operations were settled and their calls began."""
        self.change(
            "update oncebox.operation set settled_at = settled_at - cast(:by as interval) where id = any(:ids)",
            ids,
            by=by,
        )
        self.change("update oncebox.call set started_at = started_at - cast(:by as interval)", (), by=by)

    def change(self, sql: str, ids: Iterable[UUID], **more: object) -> None:
        parameters: dict[str, object] = {"ids": list(ids)} if ":ids" in sql else {}
        with self.worker.connect() as connection:
            connection.execute(sa.text(sql), parameters | more)

    def rows(self, sql: str, **parameters: object) -> list[sa.Row[Any]]:
        with self.worker.connect() as connection:
            return list(connection.execute(sa.text(sql), parameters))

    def scalar(self, sql: str, **parameters: object) -> Any:
        with self.worker.connect() as connection:
            return connection.execute(sa.text(sql), parameters).scalar_one()

    def entry(self, id: UUID) -> sa.Row[Any] | None:
        rows = self.rows("select * from oncebox.outbox_entry where id = :id", id=id)
        return rows[0] if rows else None

    def live_entry(self, id: UUID) -> sa.Row[Any]:
        entry = self.entry(id)
        assert entry is not None
        return entry

    def operation(self, id: UUID) -> sa.Row[Any]:
        (row,) = self.rows("select * from oncebox.operation where id = :id", id=id)
        return row

    def violations(self) -> list[str]:
        return [row.kind for row in self.rows("select kind from oncebox.violation order by violation_id")]

    def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of all tables that a call may change."""
        tables = ("operation", "outbox_entry", "intent", "call", "call_outcome", "violation")
        return {
            table: sorted(map(tuple, self.rows(f"select t::text from oncebox.{table} t"))) for table in tables
        }

    def wait_until_blocked(self, application: str) -> None:
        """Return when a connection of that name waits for a lock of another."""
        eventually(
            lambda: self.scalar(
                "select exists (select from pg_stat_activity where datname = current_database()"
                " and application_name = :application and cardinality(pg_blocking_pids(pid)) > 0)",
                application=application,
            ),
            what=f"{application} waits for a lock",
        )


@contextmanager
def sender(url: str) -> Generator[Sender]:
    """Both parties of a database, whose receiver was seen once."""
    agent = sa.create_engine(
        sa.make_url(url).set(drivername="postgresql+psycopg"), connect_args={"application_name": "agent"}
    )
    worker = worker_engine(url, pool_size=8, application="worker")
    registry.see(worker, "notes", CAPABILITIES)
    try:
        yield Sender(url, agent, worker)
    finally:
        agent.dispose()
        worker.dispose()


def counting(engine: sa.Engine) -> list[str]:
    """A list to which each statement that the engine sends is added."""
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    return statements
