"""What people and programs ask: states, timelines, lists, lag. None of these locks or changes anything."""

from typing import Final

from oncebox_outbox.statements.naming import LIVE_STATE, RECEIVER_SEEN, REFUSAL, STATE, named

# as_of is the transaction's start: never later than the snapshot that is read.
_COLUMNS: Final = f"""
    o.id, o.tenant, o.principal, o.destination, o.operation_id, o.kind, o.args_hash, o.deadline, o.reason, o.receipt,
    o.problem, o.supersedes, o.settled_call, o.created_at, o.settled_at, i.run, i.step, i.purpose, {STATE} as state,
    e.ready_at, e.lease_until > clock_timestamp() as under_way, e.attempts, e.unanswered, e.retries, e.wanted, e.wanted_reason, e.review,
    e.last_outcome, e.last_reason, now() as as_of,
    e.id is not null and not {RECEIVER_SEEN} as receiver_unseen"""

_FROM: Final = """
    from oncebox.operation o join oncebox.intent i on i.id = o.intent_id
    left join oncebox.outbox_entry e on e.id = o.id"""

_NARROWED: Final = """
    (cast(:tenant as text) is null or o.tenant = :tenant)
    and (cast(:principal as text) is null or o.principal = :principal)
    and (cast(:destination as text) is null or o.destination = :destination)"""

# One operation by the caller's name or by our UUID; several when the name is used by more than one party.
FIND: Final = named(
    "find",
    f"""
    select {_COLUMNS}, {REFUSAL} as refusal {_FROM}
    where (o.operation_id = :operation_id or o.id = cast(:id as uuid)) and {_NARROWED}
    order by o.id limit 20""",
)

# A call is in the timeline by its recorded outcome, as the one that settled, or as the one under way.
TIMELINE: Final = named(
    "timeline",
    """
    select c.call_id, c.kind, c.worker, c.operations, c.started_at, c.finished_at,
           coalesce(x.outcome, case when o.settled_call = c.call_id then 'receipt' end) as outcome,
           x.reason, x.http_status, x.problem
    from oncebox.operation o
    cross join lateral (
      select call_id from oncebox.call_outcome where id = o.id
      union select o.settled_call
      union select e.call_id from oncebox.outbox_entry e where e.id = o.id
    ) as mine
    join oncebox.call c on c.call_id = mine.call_id
    left join oncebox.call_outcome x on x.id = o.id and x.call_id = c.call_id
    where o.id = :id
    order by c.started_at, c.call_id""",
)

# Open operations: driven by the entries, whatever the history behind them.
LIST_OPEN: Final = named(
    "list_open",
    f"""
    select {_COLUMNS}, null as refusal
    from oncebox.outbox_entry e join oncebox.operation o on o.id = e.id join oncebox.intent i on i.id = o.intent_id
    where {LIVE_STATE} = any(cast(:states as text[])) and {_NARROWED}
      and (cast(:run as text) is null or i.run = :run)
      and (cast(:before as uuid) is null or e.id < cast(:before as uuid))
    order by e.id desc limit :limit""",
)

LIST_SETTLED: Final = named(
    "list_settled",
    f"""
    select {_COLUMNS}, null as refusal {_FROM}
    where o.final = any(cast(:states as text[])) and {_NARROWED}
      and (cast(:run as text) is null or i.run = :run)
      and (cast(:before as uuid) is null or o.id < cast(:before as uuid))
    order by o.id desc limit :limit""",
)

LIST_ALL: Final = named(
    "list_all",
    f"""
    select {_COLUMNS}, null as refusal {_FROM}
    where {_NARROWED}
      and (cast(:run as text) is null or i.run = :run)
      and (cast(:before as uuid) is null or o.id < cast(:before as uuid))
    order by o.id desc limit :limit""",
)

# Depth and age by destination and state: one pass over the live entries, never over settled rows. The age counts
# from the enqueue, so a row in back-off, dispatched or leased is unmet all the same (F6).
LAG: Final = named(
    "lag",
    f"""
    select e.destination, {LIVE_STATE} as state, count(*) as entries,
           cast(extract(epoch from clock_timestamp() - min(e.enqueued_at)) as float8) as oldest_age_s,
           count(*) filter (where e.lease_until > now() or e.ready_at <= now() + make_interval(secs => :due_soon_s)) as to_do
    from oncebox.outbox_entry e
    group by 1, 2 order by 1, 2""",
)

DESTINATIONS: Final = named("destinations", "select name, class from oncebox.destination order by name")

VIOLATIONS: Final = named(
    "violations", "select kind, count(*) as violations from oncebox.violation group by kind order by kind"
)

# Live operations that nothing would ever move on; none, by the foreign key and by enqueue being one statement (F23).
ORPHANS: Final = named(
    "orphans",
    """
    select o.id, o.operation_id from oncebox.operation o
    where o.live and not exists (select from oncebox.outbox_entry e where e.id = o.id)
    order by o.id limit :limit""",
)

LEDGER: Final = named(
    "ledger",
    f"""
    select o.id, o.tenant, o.principal, o.operation_id, o.kind, o.args_hash, o.receipt, {STATE} as state
    from oncebox.operation o left join oncebox.outbox_entry e on e.id = o.id
    where o.destination = :destination and (cast(:after as uuid) is null or o.id > cast(:after as uuid))
    order by o.id limit :limit""",
)
