"""Reads by SQL what is true after a run. Nothing of the product is imported but the names of the states.

The note service's database must have run with ``track_commit_timestamp = on`` from the first note on. Read it when
everything has stopped: the two databases are not read at one moment.
"""

import math
from typing import Any, Final

import psycopg

from oncebox_models.states import State
from tests.proof.history.statements import Key
from tests.proof.history.truth import Ledger, Note, Operation

_NOTES: Final = """
select tenant, principal, operation_key, note_id::text, version, folder, etag, args_hash,
       extract(epoch from pg_xact_commit_timestamp(xmin))::float8
from note_version order by note_id, version
"""

_SEALED: Final = """
select tenant, principal, key, extract(epoch from pg_xact_commit_timestamp(xmin))::float8
from operation_record where state = 'sealed'
"""

# Of an operation that has work left, only this is asked: can anything have been sent? One that was set aside for
# review has no entry, and a late receipt may have settled it after that. When it was set aside is not kept, but it takes
# more than two lapsed leases: from the second on, nothing is asserted of it.
_OPERATIONS: Final = """
select o.tenant, o.principal, o.operation_id,
       coalesce(o.final, case when e.attempts = 0 and e.call_id is null then 'pending' else 'unknown' end),
       o.args_hash, o.receipt, extract(epoch from o.created_at)::float8,
       extract(epoch from least(o.settled_at, lapsed.at))::float8,
       o.final is null, o.settled_call is not null
from oncebox.operation o
left join oncebox.outbox_entry e on e.id = o.id
left join lateral (
  select x.at from oncebox.call_outcome x
  where o.final is not null and x.id = o.id and x.reason = 'lease_lapsed' order by x.at offset 1 limit 1
) as lapsed on true
"""


def read_ledger(sender_url: str, notes_url: str) -> Ledger:
    """Both databases as they are now. Raises psycopg.Error, and ValueError where commit times were not kept."""
    with _connected(notes_url) as connection:
        ((tracked,),) = connection.execute("show track_commit_timestamp").fetchall()
        if tracked != "on":
            raise ValueError("the notes' database needs track_commit_timestamp = on, from its start")
        notes = _notes(connection)
        sealed = {
            Key(*key): _known(committed_at, "a tombstone")
            for *key, committed_at in connection.execute(_SEALED).fetchall()
        }
    with _connected(sender_url) as connection:
        operations = _operations(connection)
    return Ledger(notes, sealed, operations)


def _notes(connection: "psycopg.Connection[tuple[Any, ...]]") -> dict[Key, tuple[Note, ...]]:
    found: dict[Key, tuple[Note, ...]] = {}
    for tenant, principal, operation_key, *note, committed_at in connection.execute(_NOTES).fetchall():
        key = Key(tenant, principal, operation_key)
        found[key] = (*found.get(key, ()), Note(*note, committed_at=_known(committed_at, "a note")))
    return found


def _operations(connection: "psycopg.Connection[tuple[Any, ...]]") -> dict[Key, Operation]:
    found: dict[Key, Operation] = {}
    for (
        tenant,
        principal,
        operation_id,
        state,
        args_hash,
        receipt,
        created_at,
        settled_at,
        live,
        by_call,
    ) in connection.execute(_OPERATIONS).fetchall():
        key = Key(tenant, principal, operation_id)
        if key in found:
            raise ValueError(f"{key} went to two destinations: its statements cannot be told apart")
        open_until = math.inf if live else settled_at
        found[key] = Operation(State(state), args_hash, receipt, created_at, open_until, by_call)
    return found


def _known(committed_at: float | None, what: str) -> float:
    if committed_at is None:
        raise ValueError(f"{what} was committed while track_commit_timestamp was off")
    return committed_at


def _connected(url: str) -> "psycopg.Connection[tuple[Any, ...]]":
    connection = psycopg.connect(url, autocommit=True, application_name="history checker")
    connection.execute("set default_transaction_read_only = on")
    return connection
