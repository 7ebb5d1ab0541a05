"""The SQL of the demonstration on the sender's database."""

from typing import Final

from sqlalchemy import TextClause, text


def _named(name: str, sql: str) -> TextClause:
    return text(f"/* oncebox:{name} */ {sql}")


# The agent's own table: it keeps a finding and wants a note of it in one transaction.
FINDINGS: Final = _named(
    "demo_findings", "create table if not exists finding (operation_id text primary key, claim text not null)"
)
KEEP_FINDING: Final = _named(
    "demo_keep_finding", "insert into finding (operation_id, claim) values (:operation_id, :claim)"
)
# Rolled back, and there all the same: in any table, on either side of the agent's transaction.
LEFT_BEHIND: Final = _named(
    "demo_left_behind",
    """
    select (select count(*) from finding where operation_id = any(cast(:ids as text[])))
         + (select count(*) from oncebox.operation where operation_id = any(cast(:ids as text[])))""",
)

OPERATIONS: Final = _named(
    "demo_operations",
    "select operation_id, coalesce(final, 'open') as state from oncebox.operation order by operation_id",
)

ARGUMENTS: Final = _named(
    "demo_arguments", "select arguments from oncebox.operation where operation_id = :operation_id"
)

# What was claimed to be sent, less what never began.
ATTEMPTS: Final = _named(
    "demo_attempts",
    """
    select (select coalesce(sum(operations), 0) from oncebox.call where kind = 'send')
         - (select count(*) from oncebox.call_outcome o join oncebox.call c using (call_id)
            where c.kind = 'send' and o.outcome = 'not_sent')""",
)

# Of unknown outcome at some time, and settled by proof.
RECONCILED: Final = _named(
    "demo_reconciled",
    """
    select count(*) from oncebox.operation o
    where o.final in ('saved', 'refused', 'not_saved')
      and exists (select from oncebox.call_outcome x where x.id = o.id and x.outcome = 'unknown')""",
)

SAVED: Final = _named("demo_saved", "select count(*) from oncebox.operation where final = 'saved'")

WORKER_OF: Final = _named("demo_worker_of", "select worker from oncebox.call where call_id = :call_id")

IN_FLIGHT: Final = _named(
    "demo_in_flight", "select count(*) from oncebox.outbox_entry where lease_until > clock_timestamp()"
)

# `worker` is host:pid:random.
IN_FLIGHT_AT: Final = _named(
    "demo_in_flight_at",
    """
    select count(*) from oncebox.outbox_entry e join oncebox.call c using (call_id)
    where e.lease_until > clock_timestamp() and split_part(c.worker, ':', 2) = :pid""",
)

# In the broker's hands: handed over, and no worker has taken it.
AT_BROKER: Final = _named(
    "demo_at_broker", "select count(*) from oncebox.outbox_entry where dispatched_at is not null"
)
