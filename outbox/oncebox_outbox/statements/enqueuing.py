"""What runs in the caller's transaction: enqueue, look, cancel."""

from typing import Final

from oncebox_models.tables import SETTLED_CHANNEL
from oncebox_outbox.statements.naming import REFUSAL, STATE, UNSENT, named

# A sequence drawn under this lock is in commit order for the key. Sorted, so that two callers cannot deadlock.
LOCK_ORDERING_KEYS: Final = named(
    "lock_ordering_keys",
    """
    select pg_advisory_xact_lock(hashtextextended(key, 7070317))
    from (select distinct key from unnest(cast(:keys as text[])) as k(key) order by key) as sorted""",
)

# Sorted inserts, so that two transactions with the same identities wait for each other instead of deadlocking.
ENQUEUE: Final = named(
    "enqueue",
    """
    with item as (
      select * from unnest(
        cast(:positions as int[]), cast(:ids as uuid[]), cast(:operation_ids as text[]), cast(:intent_ids as uuid[]),
        cast(:runs as text[]), cast(:steps as text[]), cast(:purposes as text[]),
        cast(:contexts as text[]), cast(:trace_contexts as text[]),
        cast(:kinds as text[]), cast(:arguments as text[]), cast(:args_hashes as text[]),
        cast(:ordering_keys as text[]), cast(:deadlines as timestamptz[]), cast(:deadlines_s as float8[]),
        cast(:supersedes as uuid[])
      ) as i(position, id, operation_id, intent_id, run, step, purpose, context, trace_context,
             kind, arguments, args_hash, ordering_key, deadline, deadline_s, supersedes)
    ), admitted as (
      -- The clock of this statement: the transaction's start may lie long back, and a duration counts from here.
      select i.*, u.until
      from item i
      join oncebox.destination d on d.name = :destination
      cross join lateral (
        select coalesce(cast(d.capabilities ->> 'admission_window_s' as float8), :window_s) as window_s
      ) as w
      cross join lateral (
        select coalesce(i.deadline, statement_timestamp() + make_interval(
          secs => coalesce(i.deadline_s, least(:default_s, w.window_s)))) as until
      ) as u
      where u.until > statement_timestamp()
        and u.until <= statement_timestamp() + make_interval(secs => w.window_s)
        and (i.supersedes is null or exists (
          select from oncebox.operation p
          where p.id = i.supersedes and p.tenant = :tenant and p.principal = :principal))
    ), intents as (
      insert into oncebox.intent (id, tenant, principal, run, step, purpose, context, trace_context)
      select distinct on (a.intent_id) a.intent_id, :tenant, :principal, a.run, a.step, a.purpose,
             cast(a.context as jsonb), cast(a.trace_context as jsonb)
      from admitted a order by a.intent_id, a.position
      on conflict do nothing
    ), created as (
      insert into oncebox.operation (id, tenant, principal, destination, operation_id, intent_id, kind, arguments,
                                     args_hash, ordering_key, deadline, supersedes)
      select a.id, :tenant, :principal, :destination, a.operation_id, a.intent_id, a.kind, a.arguments,
             a.args_hash, a.ordering_key, a.until, a.supersedes
      from admitted a order by a.operation_id, a.position
      on conflict (operation_id, tenant, principal, destination) do nothing
      returning id, operation_id, ordering_key, deadline
    ), entries as (
      insert into oncebox.outbox_entry (id, destination, ordering_key, ordering_seq, deadline, wakes)
      select s.id, :destination, s.ordering_key,
             case when s.ordering_key is not null then nextval('oncebox.ordering_seq') end, s.deadline, s.nth = 1
      from (select c.id, c.ordering_key, c.deadline, row_number() over (order by i.position) as nth
            from created c join item i on i.id = c.id order by i.position) as s
    )
    select id, operation_id from created""",
)

# A statement of its own: under READ COMMITTED only a new snapshot sees what the insert waited for (R6).
EXISTING: Final = named(
    "existing",
    f"""
    select o.id, o.operation_id, o.args_hash, o.receipt, {STATE} as state, e.wanted,
           coalesce(o.reason, e.review, e.wanted_reason, e.last_reason) as reason,
           coalesce(o.problem, {REFUSAL}) as problem
    from oncebox.operation o left join oncebox.outbox_entry e on e.id = o.id
    where o.operation_id = any(cast(:operation_ids as text[]))
      and o.tenant = :tenant and o.principal = :principal and o.destination = :destination""",
)

ADMISSION: Final = named(
    "admission",
    """
    select (select coalesce(cast(d.capabilities ->> 'admission_window_s' as float8), :window_s)
            from oncebox.destination d where d.name = :destination) as window_s,
           statement_timestamp() as now,
           array(select p.id from oncebox.operation p
                 where p.id = any(cast(:supersedes as uuid[])) and p.tenant = :tenant and p.principal = :principal
           ) as superseded,
           (select coalesce(array_agg(name order by name), '{}') from oncebox.destination) as destinations""",
)

# Before anything was sent a cancel is an end with proof; afterwards it only asks for the seal.
CANCEL: Final = named(
    "cancel",
    f"""
    with target as (
      select e.id, {UNSENT} as unsent
      from oncebox.outbox_entry e where e.id = :id for update
    ), settled as (
      update oncebox.operation o set final = 'not_saved', reason = 'cancelled', settled_at = clock_timestamp()
      from target t where o.id = t.id and t.unsent and o.final is null
      returning o.id
    ), removed as (
      delete from oncebox.outbox_entry e using target t where e.id = t.id and t.unsent
    ), abandoned as (
      update oncebox.outbox_entry e set wanted = 'abandon', wanted_reason = 'cancelled', next_call = 'seal',
             ready_at = now(), dispatched_at = null
      from target t where e.id = t.id and not t.unsent and e.wanted = 'deliver'
      returning e.id
    ), told as (
      select pg_notify('{SETTLED_CHANNEL}', '') where exists (select from settled)
    )
    select (select count(*) from settled) as settled, (select count(*) from abandoned) as abandoned,
           (select count(*) from told) as notified""",
)
