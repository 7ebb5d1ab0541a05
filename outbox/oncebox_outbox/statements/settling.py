"""From an answer to the next state, and the ends that need no answer."""

from typing import Final

from oncebox_models.tables import SETTLED_CHANNEL
from oncebox_outbox.statements.naming import NO_LIVE_LEASE, UNSENT, named

# A receipt is accepted from any call, live or stale; every other answer needs the live call. `receipt`, `final`
# and the end of the entry are one statement, so that no crash lies between them.
SETTLE: Final = named(
    "settle",
    f"""
    with answer as (
      select * from unnest(
        cast(:ids as uuid[]), cast(:outcomes as text[]), cast(:reasons as text[]), cast(:http_statuses as int[]),
        cast(:problems as text[]), cast(:receipts as text[]), cast(:args_hashes as text[]),
        cast(:finals as text[]), cast(:final_reasons as text[]), cast(:next_calls as text[]),
        cast(:delays_s as float8[]), cast(:wanted as text[]), cast(:wanted_reasons as text[]),
        cast(:verdicts as int[]), cast(:returned as int[]), cast(:access_lost as bool[]), cast(:violations as text[])
      ) as a(id, outcome, reason, http_status, problem, receipt, args_hash, final, final_reason, next_call,
             delay_s, wanted, wanted_reason, verdict, returned, access_lost, violation)
    ), entry as (
      select e.id, e.call_id, e.attempts from oncebox.outbox_entry e
      where e.id = any(cast(:ids as uuid[])) order by e.id for update
    ), held as (
      -- What a receipt finds settled already, perhaps by someone we just waited for: only a lock shows that.
      select o.id, o.final, o.receipt from answer a join oncebox.operation o on o.id = a.id
      where a.outcome = 'receipt' and not exists (select from entry e where e.id = a.id)
      for update of o
    ), settled as (
      update oncebox.operation o set
        final = a.final, reason = a.final_reason, settled_at = clock_timestamp(), settled_call = :call_id,
        receipt = a.receipt,
        problem = case when a.final = 'refused' then coalesce(
          (select p.problem from oncebox.call_outcome p where p.id = a.id and p.outcome = 'refused' order by p.at desc limit 1),
          cast(a.problem as jsonb)) end
      from answer a left join entry e on e.id = a.id left join held h on h.id = a.id
      where o.id = a.id and a.final is not null and o.args_hash = a.args_hash
        and case when a.outcome = 'receipt' then coalesce(h.final, o.final) is distinct from 'saved'
                 else o.final is null and e.call_id = :call_id end
      returning o.id, o.final, o.created_at
    ), removed as (
      delete from oncebox.outbox_entry e using settled s where e.id = s.id
    ), again as (
      update oncebox.outbox_entry e set
        call_id = null, calling = null, lease_until = null, dispatched_at = null, claims = 0,
        retries = e.retries + 1,
        attempts = e.attempts - a.returned,
        unanswered = e.unanswered - a.verdict,
        ready_at = now() + make_interval(secs => a.delay_s),
        -- A cancel that came in while the call was under way wins over "deliver".
        wanted = case when e.wanted = 'deliver' then a.wanted else e.wanted end,
        wanted_reason = case when e.wanted = 'deliver' then a.wanted_reason else e.wanted_reason end,
        next_call = case when e.wanted = 'deliver' then a.next_call else 'seal' end,
        review = case when a.access_lost then 'access_lost' when a.outcome in ('unauthenticated', 'not_sent') then e.review end,
        last_outcome = a.outcome, last_reason = a.reason
      from answer a
      where e.id = a.id and a.final is null and e.call_id = :call_id
      returning e.id
    ), recorded as (
      insert into oncebox.call_outcome (id, call_id, outcome, reason, http_status, problem)
      select a.id, :call_id, a.outcome, a.reason, a.http_status, cast(a.problem as jsonb)
      from answer a left join entry e on e.id = a.id
      -- A call that comes back after it was pruned is in no timeline; what it brought counts all the same.
      where exists (select from oncebox.call c where c.call_id = :call_id)
        -- Told by `settled_call` alone: the receipt of a first try; and this very call, when it is settled again.
        and not (a.outcome = 'receipt' and :kind = 'send' and e.attempts is not distinct from 1
                 and e.call_id is not distinct from cast(:call_id as uuid))
        and not (e.id is null and exists (
          select from oncebox.operation o where o.id = a.id and o.settled_call = :call_id))
      union all
      select e.id, e.call_id, 'unknown', 'overtaken', null, null
      from entry e join settled s on s.id = e.id where e.call_id <> :call_id
      on conflict (id, call_id) do update set
        outcome = excluded.outcome, reason = excluded.reason, http_status = excluded.http_status,
        problem = excluded.problem, at = excluded.at
    ), finished as (
      update oncebox.call set finished_at = clock_timestamp() where call_id = :call_id and finished_at is null
    ), violated as (
      insert into oncebox.violation (kind, id, call_id, detail)
      select a.violation, a.id, :call_id, jsonb_build_object('outcome', a.outcome, 'reason', a.reason)
      from answer a where a.violation is not null and not exists (
        select from oncebox.violation v where v.id = a.id and v.call_id = :call_id and v.kind = a.violation)
      union all
      select case h.final when 'saved' then 'different_receipt' else 'saved_after_' || h.final end, a.id, :call_id,
             jsonb_build_object('held', h.receipt, 'received', a.receipt)
      from answer a join held h on h.id = a.id
      where (h.final in ('refused', 'not_saved') or h.final = 'saved' and h.receipt <> a.receipt)
        and not exists (
          select from oncebox.violation v
          where v.id = a.id and v.call_id = :call_id and v.detail ->> 'received' = a.receipt)
      returning kind
    ), told as (
      select pg_notify('{SETTLED_CHANNEL}', '') where exists (select from settled)
    )
    select s.id, s.final as became, extract(epoch from clock_timestamp() - s.created_at)::float8 as lag_s,
           (select count(*) from violated) as violations
    from settled s cross join (select count(*) from told) as notified
    union all
    select id, 'again', null, (select count(*) from violated) from again
    union all
    select null, null, null, count(*) from violated having count(*) > 0""",
)

# The fourth proof: nothing can ever have reached the receiver.
SETTLE_UNSENT: Final = named(
    "settle_unsent",
    f"""
    with unsent as (
      select e.id, case when e.wanted = 'abandon' then e.wanted_reason else 'expired' end as reason
      from oncebox.outbox_entry e
      where {UNSENT} and (e.deadline <= now() or e.wanted = 'abandon')
      order by e.id limit :limit for update skip locked
    ), settled as (
      update oncebox.operation o set final = 'not_saved', reason = u.reason, settled_at = clock_timestamp()
      from unsent u where o.id = u.id and o.final is null
      returning o.id
    ), removed as (
      delete from oncebox.outbox_entry e using settled s where e.id = s.id
    ), told as (
      select pg_notify('{SETTLED_CHANNEL}', '') where exists (select from settled)
    )
    select s.id from settled s cross join (select count(*) from told) as notified""",
)

# Claimed again and again without an outcome: it ends the workers that touch it. A person decides.
PARK_POISON: Final = named(
    "park_poison",
    f"""
    with poison as (
      select e.id, e.call_id from oncebox.outbox_entry e
      where e.claims >= :poison_claims and {NO_LIVE_LEASE}
      order by e.id limit :limit for update skip locked
    ), lapsed as (
      insert into oncebox.call_outcome (id, call_id, outcome, reason)
      select id, call_id, 'unknown', 'lease_lapsed' from poison where call_id is not null
      on conflict do nothing
    ), parked as (
      update oncebox.operation o set final = 'needs_review', reason = 'poison', settled_at = clock_timestamp()
      from poison p where o.id = p.id and o.final is null
      returning o.id
    ), removed as (
      delete from oncebox.outbox_entry e using parked p where e.id = p.id
    ), told as (
      select pg_notify('{SETTLED_CHANNEL}', '') where exists (select from parked)
    )
    select p.id from parked p cross join (select count(*) from told) as notified""",
)
