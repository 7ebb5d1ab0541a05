"""Both sides of the truth by SQL and in files: the sender's ledger, and the receiver's notes and access log.

Nothing here uses the code that is tested: it reads rows and lines.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

BATCH = "/v1/notes:batch"
CREATE = "/v1/notes"
STATUS = "/v1/operations:status"
SEAL = "/v1/operations:seal"
# What a worker asks about keys; its look at /v1/capabilities has nothing to do with an operation.
OPERATION_ROUTES = {BATCH: "batch", CREATE: "create", STATUS: "status", SEAL: "seal"}


@dataclass(frozen=True, slots=True)
class Request:
    """A line of the receiver's access log. ``operations``: how many it carried."""

    method: str
    route: str
    status: int
    answer: int | None
    operations: int
    keys: tuple[str, ...]
    call_id: str | None
    ended_at: str
    duration_ms: float

    @property
    def what(self) -> str:
        """``batch``, ``create``, ``status``, ``seal``; empty for what concerns no operation."""
        return OPERATION_ROUTES.get(self.route, "") if self.method == "POST" else ""


class AccessLog:
    """The note service's own log, over all its starts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def requests(self) -> list[Request]:
        """All whole lines so far, in the order in which the requests ended."""
        if not self._path.exists():
            return []
        lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
        return [_request(json.loads(line)) for line in lines if line.endswith("\n")]

    def conversation(self, operation_id: str | None = None) -> list[str]:
        """What was asked about operations, or about one, a word a request: ``["batch", "status"]``."""
        # The log shows the beginning of a key only.
        wanted = None if operation_id is None else operation_id[:8]
        return [r.what for r in self.requests() if r.what and (wanted is None or wanted in r.keys)]

    def operations_sent(self) -> int:
        """How many operations came in batches, each as often as it came."""
        return sum(request.operations for request in self.requests() if request.what == "batch")


def _request(line: dict[str, Any]) -> Request:
    return Request(
        method=line["method"],
        route=line["route"],
        status=line["status"],
        answer=line.get("answer"),
        operations=line["operations"] or 0,
        keys=tuple(line["keys"] or ()),
        call_id=line["call_id"],
        ended_at=line["ts"],
        duration_ms=line["duration_ms"],
    )


class Ledger:
    """Rows of one database, each question in a transaction of its own."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, parameters).fetchall()  # pyright: ignore[reportArgumentType, reportCallIssue] queries of these tests

    def value(self, query: str, *parameters: object) -> Any:
        """The one value of a question."""
        ((answer,),) = self.rows(query, *parameters)
        return answer

    def execute(self, statement: str, *parameters: object) -> int:
        """How many rows it changed."""
        return self._connection.execute(statement, parameters).rowcount  # pyright: ignore[reportArgumentType, reportCallIssue] statements of these tests

    def close(self) -> None:
        self._connection.close()


class SenderLedger(Ledger):
    """What the sender's database holds."""

    def states(self) -> dict[str, int]:
        """How many operations ended how; ``live`` for those that did not."""
        return dict(self.rows("SELECT coalesce(final, 'live'), count(*) FROM oncebox.operation GROUP BY 1"))

    def live(self) -> int:
        """Operations with work left."""
        return int(self.value("SELECT count(*) FROM oncebox.outbox_entry"))

    def attempts(self) -> int:
        """Attempts over all operations, ended ones too: what was claimed to be sent, less what never began."""
        return int(
            self.value(
                "SELECT (SELECT coalesce(sum(operations), 0) FROM oncebox.call WHERE kind = 'send')"
                " - (SELECT count(*) FROM oncebox.call_outcome o JOIN oncebox.call c USING (call_id)"
                "    WHERE c.kind = 'send' AND o.outcome = 'not_sent')"
            )
        )

    def sent_by_worker(self) -> dict[int, int]:
        """Operations by the process id of the worker that sent them."""
        return {
            int(worker.split(":")[1]): int(sent)
            for worker, sent in self.rows(
                "SELECT worker, sum(operations) FROM oncebox.call WHERE kind = 'send' GROUP BY worker"
            )
        }

    def worker_of(self, call_id: str) -> int:
        """The process id of the worker that made a call."""
        return int(self.value("SELECT worker FROM oncebox.call WHERE call_id = %s", call_id).split(":")[1])

    def outcomes(self, operation_id: str) -> list[tuple[str, str, str]]:
        """Kind, outcome and reason of the calls that were not simply a receipt, in order."""
        return self.rows(
            "SELECT c.kind, o.outcome, o.reason FROM oncebox.call_outcome o JOIN oncebox.call c USING (call_id)"
            " JOIN oncebox.operation p ON p.id = o.id WHERE p.operation_id = %s ORDER BY c.started_at",
            operation_id,
        )

    def leased(self) -> int:
        """Operations that a worker holds, or held when it died."""
        return int(self.value("SELECT count(*) FROM oncebox.outbox_entry WHERE lease_until IS NOT NULL"))

    def lapse_leases(self) -> int:
        """Let time pass: every lease ends now. For tests whose holders are dead; a lease lasts 20 s or more."""
        return self.execute("UPDATE oncebox.outbox_entry SET lease_until = now() WHERE lease_until > now()")

    def lapse_leases_of(self, pids: Sequence[int]) -> int:
        """The same for the calls of these workers."""
        return self.execute(
            "UPDATE oncebox.outbox_entry e SET lease_until = now() FROM oncebox.call c"
            " WHERE c.call_id = e.call_id AND split_part(c.worker, ':', 2)::int = ANY(%s)",
            list(pids),
        )

    def violations(self) -> list[tuple[Any, ...]]:
        """Contradictions that the sender recorded."""
        return self.rows("SELECT kind, id, detail FROM oncebox.violation")


class NotesLedger(Ledger):
    """What the receiver's database holds: the only place where a note is or is not."""

    def count(self) -> int:
        """All notes."""
        return int(self.value("SELECT count(*) FROM note"))

    def notes_of(self, operation_id: str) -> list[str]:
        """The ids of the notes that were made under a key of the tests' principal."""
        return [
            str(note)
            for (note,) in self.rows(
                "SELECT note_id FROM note_version WHERE tenant = 'demo' AND principal = 'researcher'"
                " AND operation_key = %s",
                operation_id,
            )
        ]

    def text_of(self, operation_id: str) -> tuple[str, str]:
        """Title and text of the note of a key, as they are stored."""
        ((title, text),) = self.rows(
            "SELECT title, text FROM note_version WHERE operation_key = %s", operation_id
        )
        return title, text

    def waiting(self, *, relation: str | None = None) -> int:
        """Sessions that wait for a lock of this database: on that table, or for a key."""
        if relation is None:
            wanted = "locktype = 'advisory'"
        else:
            wanted = f"locktype = 'relation' AND relation = '{relation}'::regclass"
        return int(
            self.value(
                "SELECT count(*) FROM pg_locks WHERE NOT granted"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
                f" AND {wanted}"
            )
        )
