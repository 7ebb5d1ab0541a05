"""Create the sender's tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


# The wake-up is decided at commit, for one row a statement: a plain NOTIFY for each enqueue would make all
# commits queue for the same lock; a try-lock at enqueue would lose wake-ups behind a slow transaction.
WAKE_RELAY = """
create function oncebox.wake_relay() returns trigger language plpgsql as $$
begin
  if pg_try_advisory_xact_lock(7070319) then
    perform pg_notify('oncebox_ready', '');
  end if;
  return null;
end $$;
create constraint trigger wake_relay after insert on oncebox.outbox_entry
  deferrable initially deferred for each row when (new.wakes) execute function oncebox.wake_relay();
"""


def upgrade() -> None:
    op.execute("create sequence oncebox.ordering_seq")
    op.create_table(
        "call",
        sa.Column("call_id", sa.UUID(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("destination", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("operations", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("kind in ('send', 'status', 'seal', 'verify')", name=op.f("ck_call_kind")),
        sa.CheckConstraint("operations > 0", name=op.f("ck_call_operations")),
        sa.PrimaryKeyConstraint("call_id", name=op.f("pk_call")),
        schema="oncebox",
    )
    op.create_index("ix_call_started_at", "call", ["started_at"], unique=False, schema="oncebox")
    op.create_table(
        "destination",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=True),
        sa.Column("receiver", sa.Text(), nullable=True),
        sa.Column("class", sa.Text(), server_default="C", nullable=False),
        sa.Column("capabilities", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("capabilities_seen_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("class in ('A', 'B', 'C')", name=op.f("ck_destination_class")),
        sa.CheckConstraint(
            "(capabilities is null) = (capabilities_seen_at is null)",
            name=op.f("ck_destination_capabilities_seen"),
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_destination")),
        sa.UniqueConstraint("receiver", name=op.f("uq_destination_receiver")),
        schema="oncebox",
    )
    op.create_table(
        "intent",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("context", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("trace_context", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_intent")),
        sa.UniqueConstraint(
            "run", "step", "tenant", "principal", name=op.f("uq_intent_run_step_tenant_principal")
        ),
        schema="oncebox",
    )
    op.create_table(
        "operation",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("destination", sa.Text(), nullable=False),
        sa.Column("operation_id", sa.Text(), nullable=False),
        sa.Column("intent_id", sa.UUID(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=True),
        sa.Column("args_hash", sa.Text(), nullable=False),
        sa.Column("hash_alg", sa.Text(), server_default="jcs-sha256/1", nullable=False),
        sa.Column("ordering_key", sa.Text(), nullable=True),
        sa.Column("deadline", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("supersedes", sa.UUID(), nullable=True),
        sa.Column("final", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("receipt", sa.Text(), nullable=True),
        sa.Column("problem", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("settled_call", sa.UUID(), nullable=True),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("settled_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("live", sa.Boolean(), sa.Computed("final is null", persisted=True), nullable=False),
        sa.CheckConstraint(
            "(final is not distinct from 'saved') = (receipt is not null)", name=op.f("ck_operation_receipt")
        ),
        sa.CheckConstraint("args_hash ~ '^[0-9a-f]{64}$'", name=op.f("ck_operation_args_hash")),
        sa.CheckConstraint(
            "final in ('saved', 'refused', 'not_saved', 'needs_review')", name=op.f("ck_operation_final")
        ),
        sa.CheckConstraint(
            "final is null or final = 'saved' or reason is not null", name=op.f("ck_operation_reason")
        ),
        sa.CheckConstraint(
            "operation_id ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'", name=op.f("ck_operation_operation_id")
        ),
        sa.CheckConstraint("(final is null) = (settled_at is null)", name=op.f("ck_operation_settled_at")),
        sa.CheckConstraint("final is not null or arguments is not null", name=op.f("ck_operation_arguments")),
        sa.ForeignKeyConstraint(["intent_id"], ["oncebox.intent.id"], name=op.f("fk_operation_intent_id")),
        sa.ForeignKeyConstraint(
            ["supersedes"], ["oncebox.operation.id"], name=op.f("fk_operation_supersedes")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_operation")),
        sa.UniqueConstraint("id", "live", name=op.f("uq_operation_id_live")),
        sa.UniqueConstraint(
            "operation_id", "tenant", "principal", "destination", name="uq_operation_identity"
        ),
        schema="oncebox",
    )
    op.create_index(
        "ix_operation_blocking",
        "operation",
        ["destination", "ordering_key"],
        unique=False,
        schema="oncebox",
        postgresql_where=sa.text("final = 'needs_review' and ordering_key is not null"),
    )
    op.create_index(
        "ix_operation_final",
        "operation",
        ["final", "id"],
        unique=False,
        schema="oncebox",
        postgresql_where=sa.text("final <> 'saved'"),
    )
    op.create_index("ix_operation_intent_id", "operation", ["intent_id"], unique=False, schema="oncebox")
    op.create_index(
        "ix_operation_prunable",
        "operation",
        ["settled_at"],
        unique=False,
        schema="oncebox",
        postgresql_where=sa.text("final is not null and arguments is not null"),
    )
    op.create_table(
        "call_outcome",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("call_id", sa.UUID(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("problem", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["call_id"], ["oncebox.call.call_id"], name=op.f("fk_call_outcome_call_id")),
        sa.ForeignKeyConstraint(["id"], ["oncebox.operation.id"], name=op.f("fk_call_outcome_id")),
        sa.PrimaryKeyConstraint("id", "call_id", name=op.f("pk_call_outcome")),
        schema="oncebox",
    )
    op.create_index("ix_call_outcome_call_id", "call_outcome", ["call_id"], unique=False, schema="oncebox")
    op.create_table(
        "outbox_entry",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("live", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("destination", sa.Text(), nullable=False),
        sa.Column("ordering_key", sa.Text(), nullable=True),
        sa.Column("ordering_seq", sa.BigInteger(), nullable=True),
        sa.Column("deadline", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column(
            "enqueued_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("ready_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("dispatched_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("call_id", sa.UUID(), nullable=True),
        sa.Column("calling", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("claims", sa.Integer(), server_default="0", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("unanswered", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_call", sa.Text(), server_default="send", nullable=False),
        sa.Column("wanted", sa.Text(), server_default="deliver", nullable=False),
        sa.Column("wanted_reason", sa.Text(), nullable=True),
        sa.Column("review", sa.Text(), nullable=True),
        sa.Column("last_outcome", sa.Text(), nullable=True),
        sa.Column("last_reason", sa.Text(), nullable=True),
        sa.Column("wakes", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.CheckConstraint(
            "(wanted = 'deliver') = (next_call <> 'seal')", name=op.f("ck_outbox_entry_only_sealed")
        ),
        sa.CheckConstraint(
            "(wanted = 'deliver') = (wanted_reason is null)", name=op.f("ck_outbox_entry_wanted_reason")
        ),
        sa.CheckConstraint("next_call in ('send', 'status', 'seal')", name=op.f("ck_outbox_entry_next_call")),
        sa.CheckConstraint("review = 'access_lost'", name=op.f("ck_outbox_entry_review")),
        sa.CheckConstraint("wanted in ('deliver', 'abandon', 'refuse')", name=op.f("ck_outbox_entry_wanted")),
        sa.CheckConstraint(
            "(call_id is null) = (lease_until is null) and (call_id is null) = (calling is null)",
            name=op.f("ck_outbox_entry_lease"),
        ),
        sa.CheckConstraint("calling in ('send', 'status', 'seal')", name=op.f("ck_outbox_entry_calling")),
        sa.CheckConstraint(
            "(ordering_key is null) = (ordering_seq is null)", name=op.f("ck_outbox_entry_ordering")
        ),
        sa.CheckConstraint(
            "claims >= 0 and retries >= 0 and unanswered >= 0 and unanswered <= attempts",
            name=op.f("ck_outbox_entry_counts"),
        ),
        sa.CheckConstraint("live", name=op.f("ck_outbox_entry_live")),
        sa.ForeignKeyConstraint(
            ["id", "live"],
            ["oncebox.operation.id", "oncebox.operation.live"],
            name="fk_outbox_entry_live",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox_entry")),
        schema="oncebox",
        postgresql_with={
            "fillfactor": "50",
            "autovacuum_vacuum_scale_factor": "0.02",
            "autovacuum_vacuum_threshold": "500",
            "autovacuum_analyze_scale_factor": "0.05",
        },
    )
    op.create_index(
        "ix_outbox_entry_ordering",
        "outbox_entry",
        ["destination", "ordering_key", "ordering_seq"],
        unique=False,
        schema="oncebox",
        postgresql_where=sa.text("ordering_key is not null"),
    )
    op.create_index("ix_outbox_entry_ready_at", "outbox_entry", ["ready_at"], unique=False, schema="oncebox")
    op.create_table(
        "violation",
        sa.Column("violation_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("call_id", sa.UUID(), nullable=True),
        sa.Column("detail", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["id"], ["oncebox.operation.id"], name=op.f("fk_violation_id")),
        sa.PrimaryKeyConstraint("violation_id", name=op.f("pk_violation")),
        schema="oncebox",
    )
    op.create_index("ix_violation_id", "violation", ["id"], unique=False, schema="oncebox")
    op.execute(WAKE_RELAY)
    # The note service that comes with this project. Its address is set when a worker or relay starts.
    op.execute("insert into oncebox.destination (name, class) values ('notes', 'A')")


def downgrade() -> None:
    for table in ("violation", "outbox_entry", "call_outcome", "operation", "intent", "destination", "call"):
        op.drop_table(table, schema="oncebox")
    op.execute("drop function oncebox.wake_relay()")
    op.execute("drop sequence oncebox.ordering_seq")
