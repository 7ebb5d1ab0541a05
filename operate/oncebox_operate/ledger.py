"""What the note service's database holds, by plain SQL over a connection of its own.

This module imports nothing of ours, so that it can be believed where the rest is in doubt. The tables it reads are
part of the wire contract: `note_version`, `note`, `operation_record`, `folder`, `folder_grant`.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

import psycopg

_CONNECT_TIMEOUT_S: Final = 5
_FIRST: Final = (UUID(int=0), 0)

# A digest instead of the text: a page of notes may be many megabytes. Lengths keep the parts apart.
_CONTENT: Final = "sha256(convert_to(concat(length(v.format), ':', v.format, length(v.title), ':', v.title, v.text), 'UTF8'))"

_WRITTEN: Final = f"""
select v.tenant, v.principal, v.operation_key, v.note_id, v.version, v.folder, v.etag, v.args_hash,
       {_CONTENT} as content, f.path as lies_in,
       coalesce(g.tenant = v.tenant and g.principal = v.principal and gf.path = v.folder
                and g.granted_at <= v.created_at and coalesce(v.created_at <= g.revoked_at, true), false) as granted,
       coalesce(r.state = 'completed' and r.note_id = v.note_id and r.version = v.version
                and r.args_hash = v.args_hash, false) as recorded,
       exists (select from folder_grant l where l.folder_id = n.folder_id and l.principal = v.principal
               and l.revoked_at is null) as readable
from unnest(%(tenants)s::text[], %(principals)s::text[], %(operation_ids)s::text[])
     as k(tenant, principal, operation_key)
join note_version v using (tenant, principal, operation_key)
join note n on n.id = v.note_id
join folder f on f.id = n.folder_id
left join folder_grant g on g.id = v.grant_id
left join folder gf on gf.id = g.folder_id
left join operation_record r on r.tenant = v.tenant and r.principal = v.principal and r.key = v.operation_key
order by v.note_id, v.version
"""

# Every version under a key after its first is a second note; a key whose note is promised and is not there is lost.
_COUNTED: Final = """
with asked as (
  select * from unnest(%(tenants)s::text[], %(principals)s::text[], %(operation_ids)s::text[], %(promised)s::bool[])
           as k(tenant, principal, operation_key, promised)
), held as (
  select k.promised, (select count(*) from note_version v join note n on n.id = v.note_id
                      where v.tenant = k.tenant and v.principal = k.principal
                        and v.operation_key = k.operation_key) as versions
  from asked k
)
select coalesce(sum(versions), 0)::bigint, coalesce(sum(greatest(versions - 1, 0)), 0)::bigint,
       count(*) filter (where promised and versions = 0)
from held
"""

_COUNT: Final = "select count(*) from note_version"

_PAGE: Final = """
select tenant, principal, operation_key, args_hash, note_id, version from note_version
where (note_id, version) > (%(note_id)s, %(version)s) order by note_id, version limit %(limit)s
"""


class Key(NamedTuple):
    """Under which a write is known to the receiver."""

    tenant: str
    principal: str
    operation_id: str


@dataclass(frozen=True, slots=True)
class Written:
    """A version of a note as the tables hold it.

    content: SHA-256 of format, title and text (lengths keep the parts apart). lies_in: the folder that the note is in now.
    granted: the grant it was written under was its principal's, for its folder, and in force at that moment.
    recorded: the record that keeps the key from being executed again names this very version.
    readable: its principal has a grant in force for the folder now.
    """

    key: Key
    note_id: str
    version: int
    folder: str
    etag: str
    args_hash: str
    content: bytes
    lies_in: str
    granted: bool
    recorded: bool
    readable: bool


class Counted(NamedTuple):
    """What the tables hold for some keys.

    notes: versions. duplicates: those of them beyond the first of a key. lost: keys whose note is promised and missing.
    """

    notes: int
    duplicates: int
    lost: int


@dataclass(frozen=True, slots=True)
class Listed:
    """One version in a walk through all of them."""

    key: Key
    args_hash: str
    note_id: str
    version: int


class NotesLedger:
    """The receiver's tables, read only. Every method raises psycopg.Error."""

    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
        self._connection = connection

    @classmethod
    @contextmanager
    def connected(cls, url: str) -> Generator[Self]:
        """A ledger over a connection of its own, which cannot write."""
        with psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=_CONNECT_TIMEOUT_S,
            application_name="oncebox verify",
        ) as connection:
            connection.execute("set default_transaction_read_only = on")
            yield cls(connection)

    def count(self) -> int:
        """All versions of all notes, whoever wrote them."""
        return int(self._connection.execute(_COUNT).fetchall()[0][0])

    def counted(self, keys: Sequence[Key], promised: Sequence[bool]) -> Counted:
        """Count by SQL alone what is held for these keys. `promised`: for each, whether its note is said to be saved."""
        (row,) = self._connection.execute(_COUNTED, {**_columns(keys), "promised": list(promised)}).fetchall()
        return Counted(*map(int, row))

    def written(self, keys: Sequence[Key]) -> dict[Key, list[Written]]:
        """What was written under each of these keys; a key without anything is absent."""
        found: dict[Key, list[Written]] = {}
        rows = self._connection.execute(_WRITTEN, _columns(keys)).fetchall()
        for (
            tenant,
            principal,
            operation_id,
            note_id,
            version,
            folder,
            etag,
            args_hash,
            content,
            *rest,
        ) in rows:
            key = Key(tenant, principal, operation_id)
            found.setdefault(key, []).append(
                Written(key, str(note_id), version, folder, etag, args_hash, bytes(content), *rest)
            )
        return found

    def pages(self, size: int) -> Iterator[list[Listed]]:
        """All versions, in pages of at most `size`."""
        note_id, version = _FIRST
        while True:
            rows = self._connection.execute(
                _PAGE, {"note_id": note_id, "version": version, "limit": size}
            ).fetchall()
            if not rows:
                return
            yield [
                Listed(Key(tenant, principal, operation_id), args_hash, str(note), of_version)
                for tenant, principal, operation_id, args_hash, note, of_version in rows
            ]
            note_id, version = rows[-1][4], rows[-1][5]


def _columns(keys: Sequence[Key]) -> dict[str, list[str]]:
    return {
        "tenants": [key.tenant for key in keys],
        "principals": [key.principal for key in keys],
        "operation_ids": [key.operation_id for key in keys],
    }
