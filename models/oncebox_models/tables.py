"""The sender's tables, schema `oncebox`. Constraints make wrong rows impossible; each index names its query.

Every timestamp is the database's clock. While an operation is live its state is in `outbox_entry`; the wide
`operation` row is not touched between enqueue and settle.
"""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, UUID

from oncebox_models.canonical import HASH_ALG
from oncebox_models.states import CallKind, State, Wanted

SCHEMA = "oncebox"
WAKE_CHANNEL = "oncebox_ready"
"""NOTIFY channel: entries were committed."""
SETTLED_CHANNEL = "oncebox_settled"
"""NOTIFY channel: operations were settled."""

metadata = sa.MetaData(
    schema=SCHEMA,
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    },
)


def _one_of(column: str, *values: str) -> str:
    listed = ", ".join(f"'{value}'" for value in values)
    return f"{column} in ({listed})"


def _timestamp(name: str, *, now: bool = False, nullable: bool = False) -> sa.Column[object]:
    default = sa.text("now()") if now else None
    return sa.Column(name, sa.TIMESTAMP(timezone=True), server_default=default, nullable=nullable)


def _uuid(
    name: str, *constraints: sa.ForeignKey, primary_key: bool = False, nullable: bool = False
) -> sa.Column[object]:
    return sa.Column(name, UUID(), *constraints, primary_key=primary_key, nullable=nullable)


destination = sa.Table(
    "destination",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("base_url", sa.Text),
    # One receiver belongs to one destination: two names for one party would be two identities for one note.
    sa.Column("receiver", sa.Text, unique=True),
    sa.Column("class", sa.Text, nullable=False, server_default="C"),
    sa.Column("capabilities", JSONB),
    _timestamp("capabilities_seen_at", nullable=True),
    _timestamp("created_at", now=True),
    sa.CheckConstraint(_one_of("class", "A", "B", "C"), name="class"),
    sa.CheckConstraint("(capabilities is null) = (capabilities_seen_at is null)", name="capabilities_seen"),
)

intent = sa.Table(
    "intent",
    metadata,
    _uuid("id", primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("run", sa.Text, nullable=False),
    sa.Column("step", sa.Text, nullable=False),
    sa.Column("purpose", sa.Text, nullable=False),
    sa.Column("context", JSONB),
    sa.Column("trace_context", JSONB),
    _timestamp("created_at", now=True),
    # `intent show RUN` finds a run without knowing whose it is.
    sa.UniqueConstraint("run", "step", "tenant", "principal"),
)

operation = sa.Table(
    "operation",
    metadata,
    _uuid("id", primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("destination", sa.Text, nullable=False),
    sa.Column("operation_id", sa.Text, nullable=False),
    _uuid("intent_id", sa.ForeignKey(intent.c.id)),
    sa.Column("kind", sa.Text, nullable=False),
    # Text, not jsonb: jsonb reorders and drops, and these bytes are sent and hashed as they are.
    sa.Column("arguments", sa.Text),
    sa.Column("args_hash", sa.Text, nullable=False),
    sa.Column("hash_alg", sa.Text, nullable=False, server_default=HASH_ALG),
    sa.Column("ordering_key", sa.Text),
    _timestamp("deadline"),
    _uuid("supersedes", sa.ForeignKey("oncebox.operation.id"), nullable=True),
    sa.Column("final", sa.Text),
    sa.Column("reason", sa.Text),
    sa.Column("receipt", sa.Text),
    sa.Column("problem", JSONB),
    _uuid("settled_call", nullable=True),
    _timestamp("created_at", now=True),
    _timestamp("settled_at", nullable=True),
    sa.Column("live", sa.Boolean, sa.Computed("final is null", persisted=True), nullable=False),
    # operation_id first: `status note-7` looks it up without the other three.
    sa.UniqueConstraint("operation_id", "tenant", "principal", "destination", name="uq_operation_identity"),
    # The target of outbox_entry's foreign key.
    sa.UniqueConstraint("id", "live"),
    sa.CheckConstraint("operation_id ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'", name="operation_id"),
    sa.CheckConstraint("args_hash ~ '^[0-9a-f]{64}$'", name="args_hash"),
    sa.CheckConstraint(
        _one_of("final", State.SAVED, State.REFUSED, State.NOT_SAVED, State.NEEDS_REVIEW), name="final"
    ),
    sa.CheckConstraint("(final is null) = (settled_at is null)", name="settled_at"),
    sa.CheckConstraint("(final is not distinct from 'saved') = (receipt is not null)", name="receipt"),
    sa.CheckConstraint("final is null or final = 'saved' or reason is not null", name="reason"),
    sa.CheckConstraint("final is not null or arguments is not null", name="arguments"),
    # `intent show RUN` and pruning of contexts.
    sa.Index("ix_operation_intent_id", "intent_id"),
    # `list --state refused|not_saved|needs_review`, newest first; saved ones are read along the primary key.
    sa.Index("ix_operation_final", "final", "id", postgresql_where=sa.text("final <> 'saved'")),
    # prune: settled operations that still hold their arguments, oldest first.
    sa.Index(
        "ix_operation_prunable",
        "settled_at",
        postgresql_where=sa.text("final is not null and arguments is not null"),
    ),
    # The head test: an operation in review blocks its ordering key.
    sa.Index(
        "ix_operation_blocking",
        "destination",
        "ordering_key",
        postgresql_where=sa.text("final = 'needs_review' and ordering_key is not null"),
    ),
)

ordering_seq = sa.Sequence("ordering_seq", metadata=metadata)

outbox_entry = sa.Table(
    "outbox_entry",
    metadata,
    _uuid("id", primary_key=True),
    sa.Column("live", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("destination", sa.Text, nullable=False),
    # The caller's key within its tenant and principal: `tenant/principal/key`.
    sa.Column("ordering_key", sa.Text),
    sa.Column("ordering_seq", sa.BigInteger),
    _timestamp("deadline"),
    _timestamp("enqueued_at", now=True),
    _timestamp("ready_at", now=True),
    _timestamp("dispatched_at", nullable=True),
    _uuid("call_id", nullable=True),
    # The kind of that call: a send under way counts among the unanswered and is not yet a doubt.
    sa.Column("calling", sa.Text),
    _timestamp("lease_until", nullable=True),
    # Claims since the last recorded outcome: two or more, and it is claimed alone (it may be poison).
    sa.Column("claims", sa.Integer, nullable=False, server_default="0"),
    # Send calls that may have reached the receiver.
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    # Send calls without a verdict. Counted at the claim and taken back by a verdict, so a crash counts as one.
    sa.Column("unanswered", sa.Integer, nullable=False, server_default="0"),
    # Outcomes in a row that did not settle it: the exponent of the retry schedule.
    sa.Column("retries", sa.Integer, nullable=False, server_default="0"),
    sa.Column("next_call", sa.Text, nullable=False, server_default=CallKind.SEND),
    sa.Column("wanted", sa.Text, nullable=False, server_default=Wanted.DELIVER),
    sa.Column("wanted_reason", sa.Text),
    sa.Column("review", sa.Text),
    sa.Column("last_outcome", sa.Text),
    sa.Column("last_reason", sa.Text),
    # True on one row a statement: the deferred wake-up trigger fires for that row only, not for each.
    sa.Column("wakes", sa.Boolean, nullable=False, server_default=sa.false()),
    # "Settled with a live entry" cannot be committed: a settled operation's (id, true) does not exist.
    sa.ForeignKeyConstraint(
        ["id", "live"],
        [operation.c.id, operation.c.live],
        name="fk_outbox_entry_live",
        deferrable=True,
        initially="DEFERRED",
    ),
    sa.CheckConstraint("live", name="live"),
    sa.CheckConstraint(
        "(call_id is null) = (lease_until is null) and (call_id is null) = (calling is null)", name="lease"
    ),
    sa.CheckConstraint(_one_of("calling", CallKind.SEND, CallKind.STATUS, CallKind.SEAL), name="calling"),
    sa.CheckConstraint("(ordering_key is null) = (ordering_seq is null)", name="ordering"),
    sa.CheckConstraint(
        "claims >= 0 and retries >= 0 and unanswered >= 0 and unanswered <= attempts", name="counts"
    ),
    sa.CheckConstraint(_one_of("next_call", CallKind.SEND, CallKind.STATUS, CallKind.SEAL), name="next_call"),
    sa.CheckConstraint(_one_of("wanted", *Wanted), name="wanted"),
    sa.CheckConstraint("(wanted = 'deliver') = (next_call <> 'seal')", name="only_sealed"),
    sa.CheckConstraint("(wanted = 'deliver') = (wanted_reason is null)", name="wanted_reason"),
    sa.CheckConstraint("review = 'access_lost'", name="review"),
    # dispatch: due entries, oldest first, from a low mark.
    sa.Index("ix_outbox_entry_ready_at", "ready_at"),
    # The head test of an ordering key.
    sa.Index(
        "ix_outbox_entry_ordering",
        "destination",
        "ordering_key",
        "ordering_seq",
        postgresql_where=sa.text("ordering_key is not null"),
    ),
    # Updated three times in its short life: room on the page keeps the updates in place (HOT).
    postgresql_with={
        "fillfactor": "50",
        "autovacuum_vacuum_scale_factor": "0.02",
        "autovacuum_vacuum_threshold": "500",
        "autovacuum_analyze_scale_factor": "0.05",
    },
)

call = sa.Table(
    "call",
    metadata,
    _uuid("call_id", primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("destination", sa.Text, nullable=False),
    sa.Column("worker", sa.Text, nullable=False),
    sa.Column("operations", sa.Integer, nullable=False),
    _timestamp("started_at", now=True),
    _timestamp("finished_at", nullable=True),
    sa.CheckConstraint(_one_of("kind", *CallKind), name="kind"),
    sa.CheckConstraint("operations > 0", name="operations"),
    # prune: old calls that no kept row points to.
    sa.Index("ix_call_started_at", "started_at"),
)

call_outcome = sa.Table(
    "call_outcome",
    metadata,
    # id first: the timeline of one operation.
    _uuid("id", sa.ForeignKey(operation.c.id), primary_key=True),
    _uuid("call_id", sa.ForeignKey(call.c.call_id), primary_key=True),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("http_status", sa.Integer),
    sa.Column("problem", JSONB),
    _timestamp("at", now=True),
    # prune, and the foreign key's own look-up when a call is deleted.
    sa.Index("ix_call_outcome_call_id", "call_id"),
)

violation = sa.Table(
    "violation",
    metadata,
    sa.Column("violation_id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    _uuid("id", sa.ForeignKey(operation.c.id)),
    _uuid("call_id", nullable=True),
    sa.Column("detail", JSONB, nullable=False),
    _timestamp("at", now=True),
    sa.Index("ix_violation_id", "id"),
)
