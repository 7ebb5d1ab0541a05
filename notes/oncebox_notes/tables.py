"""The tables of the note service, defined once; a test compares them with the migrations.

Tables that `verify` reads with plain SQL (part of the contract, see docs/wire/README.md):

- `note_version`: one row a version; `tenant`, `principal`, `operation_key` (unique together), `note_id`,
  `version`, `folder`, `args_hash`, `etag`, `grant_id`, `token_id`, `created_at`.
- `operation_record`: one row a key; `state` (`completed`, `sealed`), `args_hash`, `note_id`, `version`.
- `folder_grant`: one row a grant, kept after its revocation; `granted_at`, `revoked_at`.
"""

from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

metadata: Final = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

_Moment: Final = sa.TIMESTAMP(timezone=True)


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, _Moment, nullable=False, server_default=sa.text("clock_timestamp()"))


receiver = sa.Table(
    "receiver",
    metadata,
    sa.Column("singleton", sa.Boolean, primary_key=True, server_default=sa.text("true")),
    sa.Column("id", sa.Uuid, nullable=False, server_default=sa.text("gen_random_uuid()")),
    _moment("created_at"),
    sa.CheckConstraint("singleton", name="one_row"),
)

token = sa.Table(
    "token",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("delegate", sa.Boolean, nullable=False),
    sa.Column("tenants", pg.ARRAY(sa.Text), nullable=False),
    sa.Column("secret_hash", sa.LargeBinary, nullable=False),
    _moment("created_at"),
    sa.Column("revoked_at", _Moment),
    sa.CheckConstraint("octet_length(secret_hash) = 32", name="secret_hash_is_sha256"),
    sa.CheckConstraint("delegate = (cardinality(tenants) > 0)", name="tenants_only_for_delegates"),
)

folder = sa.Table(
    "folder",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    _moment("created_at"),
    sa.UniqueConstraint("tenant", "path"),
    # The target of the references that carry the tenant along, so that nothing can point across tenants.
    sa.UniqueConstraint("id", "tenant"),
)

folder_grant = sa.Table(
    "folder_grant",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("folder_id", sa.BigInteger, nullable=False),
    _moment("granted_at"),
    sa.Column("revoked_at", _Moment),
    sa.ForeignKeyConstraint(["folder_id", "tenant"], ["folder.id", "folder.tenant"]),
    sa.CheckConstraint("revoked_at >= granted_at", name="revoked_after_granted"),
    # One live grant for a principal and a folder; the look-up of every write.
    sa.Index(
        "ix_folder_grant_live",
        "folder_id",
        "principal",
        unique=True,
        postgresql_where=sa.text("revoked_at IS NULL"),
    ),
    # The folders a principal may write to: the answer of `GET /v1/folders` and of a refusal.
    sa.Index("ix_folder_grant_principal", "tenant", "principal"),
)

note = sa.Table(
    "note",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("folder_id", sa.BigInteger, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("created_at", _Moment, nullable=False),
    sa.ForeignKeyConstraint(["folder_id", "tenant"], ["folder.id", "folder.tenant"]),
    sa.CheckConstraint("version >= 1", name="version_counts_from_one"),
)

note_version = sa.Table(
    "note_version",
    metadata,
    sa.Column("note_id", sa.Uuid, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("operation_key", sa.Text, nullable=False),
    sa.Column("folder", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("format", sa.Text, nullable=False),
    sa.Column("etag", sa.Text, nullable=False),
    sa.Column("args_hash", sa.Text, nullable=False),
    sa.Column("call_id", sa.Text),
    # Who really sent it, and which grant allowed it. No foreign keys: they would lock these hot rows for
    # every note, and neither tokens nor grants are ever deleted.
    sa.Column("token_id", sa.Text, nullable=False),
    sa.Column("grant_id", sa.BigInteger, nullable=False),
    sa.Column("created_at", _Moment, nullable=False),
    sa.PrimaryKeyConstraint("note_id", "version"),
    sa.ForeignKeyConstraint(["note_id"], ["note.id"]),
    # A second line of defence behind operation_record, and the look-up of `GET /v1/notes?operation=`.
    sa.UniqueConstraint("tenant", "principal", "operation_key"),
    sa.CheckConstraint("format IN ('markdown', 'plain')", name="format_known"),
    sa.CheckConstraint("args_hash ~ '^[0-9a-f]{64}$'", name="args_hash_is_sha256"),
)

operation_record = sa.Table(
    "operation_record",
    metadata,
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("args_hash", sa.Text),
    sa.Column("note_id", sa.Uuid),
    sa.Column("version", sa.Integer),
    sa.Column("folder", sa.Text),
    sa.Column("created_at", _Moment, nullable=False),
    sa.Column("deadline", _Moment),
    sa.PrimaryKeyConstraint("tenant", "principal", "key"),
    sa.CheckConstraint(
        "CASE state"
        " WHEN 'completed' THEN num_nulls(args_hash, note_id, version, folder) = 0 AND deadline IS NULL"
        " WHEN 'sealed' THEN num_nonnulls(note_id, version, folder) = 0 AND deadline IS NOT NULL"
        " ELSE false END",
        name="complete_or_sealed",
    ),
    # The purge of tombstones; completed records are never in it.
    sa.Index("ix_operation_record_sealed", "deadline", postgresql_where=sa.text("state = 'sealed'")),
)
