"""Plans with 200,000 operations: the cost of the path follows the backlog, never the history.

Each statement is explained as it is, with real parameters, both planned for these parameters and as the generic plan
that a worker's prepared statement turns into.
"""

import json
import re
from collections.abc import Generator, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import TextClause

from oncebox_models.arguments import Kind
from oncebox_outbox import statements
from tests.support import databases
from tests.support.databases import DatabaseServer

SETTLED, LIVE = 180_000, 20_500

LOAD = f"""
    insert into oncebox.intent (id, tenant, principal, run, step, purpose)
    select md5('intent' || n)::uuid, 'demo', 'researcher', 'run-' || n, 'step', 'why' from generate_series(1, 2000) as n;
    insert into oncebox.operation (id, tenant, principal, destination, operation_id, intent_id, kind, arguments,
                                   args_hash, deadline, final, reason, receipt, settled_at, created_at)
    select md5('operation' || n)::uuid, 'demo', 'researcher', 'notes', 'note-' || n, md5('intent' || (n % 2000 + 1))::uuid,
           'note.create', '{{"text":"' || repeat('x', 100) || '"}}', repeat('a', 64), now() + interval '3 d',
           case when n > {SETTLED} then null when n % 500 = 0 then 'refused' else 'saved' end,
           case when n <= {SETTLED} and n % 500 = 0 then 'too_large' end,
           case when n <= {SETTLED} and n % 500 <> 0 then '{{}}' end,
           case when n <= {SETTLED} then now() - n * interval '1 s' end, now() - n * interval '1 s'
    from generate_series(1, {SETTLED + LIVE}) as n;
    insert into oncebox.outbox_entry (id, destination, deadline, ready_at, ordering_key, ordering_seq, dispatched_at)
    select md5('operation' || n)::uuid, 'notes', now() + interval '3 d', now() - n * interval '10 ms',
           case when n % 10 = 0 then 'demo/researcher/k' || n % 1000 end, case when n % 10 = 0 then n end,
           case when n % 100 <> 0 then now() end
    from generate_series({SETTLED + 1}, {SETTLED + LIVE}) as n;
    insert into oncebox.call (call_id, kind, destination, worker, operations)
    select md5('call' || n)::uuid, 'send', 'notes', 'w', 100 from generate_series(1, 2000) as n;
    insert into oncebox.call_outcome (id, call_id, outcome, reason)
    select md5('operation' || n)::uuid, md5('call' || (n % 2000 + 1))::uuid, 'unknown', 'timeout'
    from generate_series(1, 200000, 10) as n;
    update oncebox.destination set receiver = 'r', capabilities = '{{}}', capabilities_seen_at = now();
    analyze"""

Node = Mapping[str, Any]

BY_ID = {"pk_operation", "uq_operation_id_live"}
"""Both begin with the id; which of them is taken is the planner's whim."""


class Explained:
    """Every node of a plan, flat."""

    def __init__(self, plan: Node) -> None:
        self.nodes = list(self._flat(plan))

    def _flat(self, node: Node) -> Iterator[Node]:
        yield node
        for child in node.get("Plans", ()):
            yield from self._flat(child)

    def scans(self, table: str) -> set[str]:
        """How a table is read: names of indexes, or the words for reading all of it."""
        indexed = {
            node["Index Name"]
            for node in self.nodes
            if node.get("Relation Name") == table and "Index Name" in node
        }
        whole = {node["Node Type"] for node in self.nodes if node.get("Relation Name") == table and node["Node Type"].endswith("Seq Scan")}  # fmt: skip
        return indexed | whole

    @property
    def indexes(self) -> set[str]:
        return {node["Index Name"] for node in self.nodes if "Index Name" in node}

    @property
    def tables(self) -> set[str]:
        return {node["Relation Name"] for node in self.nodes if "Relation Name" in node}

    @property
    def read_whole(self) -> set[str]:
        return {node["Relation Name"] for node in self.nodes if node["Node Type"].endswith("Seq Scan")}


class Loaded:
    """The loaded database."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def explain(self, statement: TextClause, parameters: Mapping[str, object], mode: str) -> Explained:
        names = list(parameters)
        text = re.sub(r"(?<![:\w]):([a-z_]+)", lambda found: f"${names.index(found[1]) + 1}", statement.text)
        listed = sql.SQL(", ").join(sql.Literal(value) for value in parameters.values())
        values = sql.SQL("({})").format(listed) if parameters else sql.SQL("")
        with self._connection.transaction(force_rollback=True):
            self._connection.execute(f"set local plan_cache_mode = force_{mode}_plan".encode())
            self._connection.execute(f"prepare it as {text}".encode())
            row = self._connection.execute(
                sql.SQL("explain (format json) execute it{}").format(values)
            ).fetchone()
            self._connection.execute("deallocate it")
        assert row is not None
        plan: Any = row[0] if not isinstance(row[0], str) else json.loads(row[0])
        return Explained(plan[0]["Plan"])

    def live(self, count: int) -> list[UUID]:
        rows = self._connection.execute("select id from oncebox.outbox_entry order by id limit %s", [count])
        return [row[0] for row in rows]


@pytest.fixture(scope="module")
def loaded(database_server: DatabaseServer, postgres_url: str) -> Generator[Loaded]:
    with (
        database_server.clone(database_server.template("sender", databases.migrate_sender)) as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute("set jit = off")
        connection.execute(LOAD.encode())
        yield Loaded(connection)


BOTH = pytest.mark.parametrize("mode", ["custom", "generic"])
PARTY = {"tenant": "demo", "principal": "researcher", "destination": "notes"}
ANYBODY = dict.fromkeys(PARTY)


@BOTH
@pytest.mark.parametrize("chunk", [1, 100])
def test_claim_finds_its_entries_and_operations_by_primary_key(loaded: Loaded, mode: str, chunk: int) -> None:
    plan = loaded.explain(
        statements.CLAIM,
        {
            "ids": loaded.live(chunk), "destination": "notes", "kinds": [str(kind) for kind in Kind], "poison_claims": 5,
            "lease_s": 45.0, "worker": "w", "send_call": uuid4(), "status_call": uuid4(), "seal_call": uuid4(),
        },
        mode,
    )  # fmt: skip
    assert "pk_outbox_entry" in plan.scans("outbox_entry")
    assert plan.scans("operation") & BY_ID
    assert plan.read_whole <= {"destination"}


@BOTH
def test_dispatch_walks_the_due_entries_from_the_low_mark(loaded: Loaded, mode: str) -> None:
    low_mark = datetime.now(UTC) - timedelta(seconds=SETTLED / 100 + 30)
    plan = loaded.explain(
        statements.DISPATCH,
        {"low_mark": low_mark, "redispatch_s": 60.0, "limit": 500, "send_alone": ["too_large"]},
        mode,
    )
    (walk,) = (node for node in plan.nodes if node.get("Index Name") == "ix_outbox_entry_ready_at")
    assert walk["Node Type"] == "Index Scan", "in order: no sort of the backlog"
    assert "ready_at >=" in walk["Index Cond"]
    assert plan.read_whole <= {"destination"}
    assert plan.scans("operation") <= {"ix_operation_blocking", "ix_operation_final"}


@BOTH
def test_the_head_test_uses_the_index_of_the_keys(loaded: Loaded, mode: str) -> None:
    plan = loaded.explain(
        statements.DISPATCH,
        {"low_mark": datetime.now(UTC), "redispatch_s": 60.0, "limit": 500, "send_alone": ["too_large"]},
        mode,
    )
    assert "ix_outbox_entry_ordering" in plan.scans("outbox_entry")


@BOTH
def test_lag_reads_the_live_entries_and_nothing_else(loaded: Loaded, mode: str) -> None:
    """Invariant 10: O(backlog)."""
    assert loaded.explain(statements.LAG, {"due_soon_s": 30.0}, mode).tables == {"outbox_entry"}


@BOTH
@pytest.mark.parametrize("narrowed", [PARTY, ANYBODY], ids=["party", "anybody"])
@pytest.mark.parametrize("id", [None, uuid4()], ids=["name", "uuid"])
def test_an_operation_is_found_by_its_name_through_the_unique_index(
    loaded: Loaded, mode: str, narrowed: Mapping[str, object], id: UUID | None
) -> None:
    plan = loaded.explain(statements.FIND, {"operation_id": "note-77", "id": id, **narrowed}, mode)
    assert "uq_operation_identity" in plan.indexes
    assert plan.read_whole <= {"destination"}


@BOTH
def test_open_operations_are_listed_from_the_entries(loaded: Loaded, mode: str) -> None:
    plan = loaded.explain(
        statements.LIST_OPEN,
        {"states": ["pending"], **ANYBODY, "run": None, "before": None, "limit": 50},
        mode,
    )
    assert plan.scans("operation") <= BY_ID
    assert "operation" not in plan.read_whole


@BOTH
def test_refused_operations_are_listed_from_their_index(loaded: Loaded, mode: str) -> None:
    plan = loaded.explain(
        statements.LIST_SETTLED,
        {"states": ["refused"], **ANYBODY, "run": None, "before": None, "limit": 50},
        mode,
    )
    assert "operation" not in plan.read_whole
    if mode == "custom":  # a generic plan cannot know that the states asked for are the rare ones
        assert "ix_operation_final" in plan.scans("operation")


@BOTH
def test_all_operations_are_listed_along_the_primary_key(loaded: Loaded, mode: str) -> None:
    plan = loaded.explain(statements.LIST_ALL, {**ANYBODY, "run": None, "before": None, "limit": 50}, mode)
    assert plan.scans("operation") <= BY_ID


@BOTH
def test_existing_operations_are_found_by_identity(loaded: Loaded, mode: str) -> None:
    names = [f"note-{n}" for n in range(100)]
    plan = loaded.explain(statements.EXISTING, {"operation_ids": names, **PARTY}, mode)
    assert plan.scans("operation") == {"uq_operation_identity"}
    assert "outbox_entry" not in plan.read_whole or mode == "custom"


@BOTH
def test_settle_writes_by_primary_key(loaded: Loaded, mode: str) -> None:
    ids = loaded.live(100)
    none = [None] * len(ids)
    plan = loaded.explain(
        statements.SETTLE,
        {
            "call_id": uuid4(), "kind": "send", "ids": ids, "outcomes": ["receipt"] * len(ids), "reasons": ["created"] * len(ids),
            "http_statuses": [201] * len(ids), "problems": none, "receipts": ["{}"] * len(ids),
            "args_hashes": ["a" * 64] * len(ids), "finals": ["saved"] * len(ids), "final_reasons": none, "next_calls": none,
            "delays_s": none, "wanted": none, "wanted_reasons": none, "verdicts": none, "returned": none,
            "access_lost": none, "violations": none,
        },
        mode,
    )  # fmt: skip
    assert plan.scans("operation") <= BY_ID
    assert "operation" not in plan.read_whole
    assert "outbox_entry" not in plan.read_whole


@BOTH
@pytest.mark.parametrize(
    ("statement", "parameters"),
    [
        (statements.SETTLE_UNSENT, {"limit": 500}),
        (statements.PARK_POISON, {"poison_claims": 5, "limit": 500}),
        (statements.RECONCILE, {"id": None, **ANYBODY}),
        (statements.RECONCILE, {"id": None, **PARTY}),
        (statements.STUCK, {"stuck_s": 120.0}),
    ],
    ids=["unsent", "poison", "reconcile", "reconcile-party", "stuck"],
)
def test_housekeeping_of_live_operations_never_reads_the_history(
    loaded: Loaded, mode: str, statement: TextClause, parameters: Mapping[str, object]
) -> None:
    assert loaded.explain(statement, parameters, mode).scans("operation") <= BY_ID


@BOTH
def test_a_retry_finds_its_entry_by_primary_key(loaded: Loaded, mode: str) -> None:
    plan = loaded.explain(statements.RETRY, {"id": loaded.live(1)[0]}, mode)
    assert "pk_outbox_entry" in plan.scans("outbox_entry")
    assert plan.read_whole <= {"destination"}


@BOTH
def test_those_in_review_are_counted_from_their_index(loaded: Loaded, mode: str) -> None:
    assert "operation" not in loaded.explain(statements.IN_REVIEW, {}, mode).read_whole


@BOTH
def test_prune_walks_the_prunable_operations_oldest_first(loaded: Loaded, mode: str) -> None:
    plan = loaded.explain(statements.PRUNE_OPERATIONS, {"older_than_s": 86_400.0, "limit": 1_000}, mode)
    assert "ix_operation_prunable" in plan.scans("operation")
    if (
        mode == "custom"
    ):  # a generic plan cannot know the limit; PostgreSQL then goes on planning for each batch
        assert "operation" not in plan.read_whole


@BOTH
def test_a_timeline_is_found_by_the_operation(loaded: Loaded, mode: str) -> None:
    plan = loaded.explain(statements.TIMELINE, {"id": loaded.live(1)[0]}, mode)
    assert plan.scans("operation") <= BY_ID
    assert "outbox_entry" not in plan.read_whole
