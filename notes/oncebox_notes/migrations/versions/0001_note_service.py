"""Receiver, tokens, folders, grants, notes with their versions, and one record a key."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql as pg

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "folder",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_folder")),
        sa.UniqueConstraint("id", "tenant", name=op.f("uq_folder_id_tenant")),
        sa.UniqueConstraint("tenant", "path", name=op.f("uq_folder_tenant_path")),
    )
    op.create_table(
        "operation_record",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("args_hash", sa.Text(), nullable=True),
        sa.Column("note_id", sa.Uuid(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("folder", sa.Text(), nullable=True),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("deadline", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint(
            "CASE state WHEN 'completed' THEN num_nulls(args_hash, note_id, version, folder) = 0 AND deadline IS NULL WHEN 'sealed' THEN num_nonnulls(note_id, version, folder) = 0 AND deadline IS NOT NULL ELSE false END",
            name=op.f("ck_operation_record_complete_or_sealed"),
        ),
        sa.PrimaryKeyConstraint("tenant", "principal", "key", name=op.f("pk_operation_record")),
    )
    op.create_index(
        "ix_operation_record_sealed",
        "operation_record",
        ["deadline"],
        unique=False,
        postgresql_where=sa.text("state = 'sealed'"),
    )
    op.create_table(
        "receiver",
        sa.Column("singleton", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column(
            "created_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint("singleton", name=op.f("ck_receiver_one_row")),
        sa.PrimaryKeyConstraint("singleton", name=op.f("pk_receiver")),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("delegate", sa.Boolean(), nullable=False),
        sa.Column("tenants", pg.ARRAY(sa.Text()), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("revoked_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint(
            "delegate = (cardinality(tenants) > 0)", name=op.f("ck_token_tenants_only_for_delegates")
        ),
        sa.CheckConstraint("octet_length(secret_hash) = 32", name=op.f("ck_token_secret_hash_is_sha256")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
    )
    op.create_table(
        "folder_grant",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("folder_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "granted_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("revoked_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("revoked_at >= granted_at", name=op.f("ck_folder_grant_revoked_after_granted")),
        sa.ForeignKeyConstraint(
            ["folder_id", "tenant"], ["folder.id", "folder.tenant"], name=op.f("fk_folder_grant_folder")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_folder_grant")),
    )
    op.create_index(
        "ix_folder_grant_live",
        "folder_grant",
        ["folder_id", "principal"],
        unique=True,
        postgresql_where=sa.text("revoked_at IS NULL"),
    )
    op.create_index("ix_folder_grant_principal", "folder_grant", ["tenant", "principal"], unique=False)
    op.create_table(
        "note",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("folder_id", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.CheckConstraint("version >= 1", name=op.f("ck_note_version_counts_from_one")),
        sa.ForeignKeyConstraint(
            ["folder_id", "tenant"], ["folder.id", "folder.tenant"], name=op.f("fk_note_folder")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_note")),
    )
    op.create_table(
        "note_version",
        sa.Column("note_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("operation_key", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("etag", sa.Text(), nullable=False),
        sa.Column("args_hash", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=True),
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("grant_id", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.CheckConstraint("args_hash ~ '^[0-9a-f]{64}$'", name=op.f("ck_note_version_args_hash_is_sha256")),
        sa.CheckConstraint("format IN ('markdown', 'plain')", name=op.f("ck_note_version_format_known")),
        sa.ForeignKeyConstraint(["note_id"], ["note.id"], name=op.f("fk_note_version_note")),
        sa.PrimaryKeyConstraint("note_id", "version", name=op.f("pk_note_version")),
        sa.UniqueConstraint(
            "tenant",
            "principal",
            "operation_key",
            name=op.f("uq_note_version_tenant_principal_operation_key"),
        ),
    )
    # Who this receiver is, for as long as its database lives.
    op.execute("INSERT INTO receiver DEFAULT VALUES")


def downgrade() -> None:
    op.drop_table("note_version")
    op.drop_table("note")
    op.drop_index("ix_folder_grant_principal", table_name="folder_grant")
    op.drop_index(
        "ix_folder_grant_live", table_name="folder_grant", postgresql_where=sa.text("revoked_at IS NULL")
    )
    op.drop_table("folder_grant")
    op.drop_table("token")
    op.drop_table("receiver")
    op.drop_index(
        "ix_operation_record_sealed",
        table_name="operation_record",
        postgresql_where=sa.text("state = 'sealed'"),
    )
    op.drop_table("operation_record")
    op.drop_table("folder")
