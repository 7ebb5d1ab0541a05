"""From due to under way: what the relay and a worker take."""

from typing import Final

from oncebox_outbox.statements.naming import HEAD_OF_KEY, NEXT_CALL, NO_LIVE_LEASE, RECEIVER_SEEN, named

# Takes due entries, oldest first, from a low mark: below it everything was dispatched already.
DISPATCH: Final = named(
    "dispatch",
    f"""
    with due as (
      select e.id from oncebox.outbox_entry e
      where e.ready_at <= now() and e.ready_at >= cast(:low_mark as timestamptz)
        and (e.dispatched_at is null or e.dispatched_at <= now() - make_interval(secs => :redispatch_s))
        and {NO_LIVE_LEASE} and {HEAD_OF_KEY} and {RECEIVER_SEEN}
      order by e.ready_at limit :limit
      for update skip locked
    )
    update oncebox.outbox_entry e set dispatched_at = now()
    from due where e.id = due.id
    returning e.id, e.destination, {NEXT_CALL} as kind, e.ready_at, e.dispatched_at,
              -- It may be poison, or its last request was refused as a whole: no other shares its message.
              e.claims >= 2 or coalesce(e.last_reason = any(cast(:send_alone as text[])), false) as alone""",
)

UNDISPATCH: Final = named(
    "undispatch",
    """
    with target as (
      select e.id from oncebox.outbox_entry e
      where e.id = any(cast(:ids as uuid[])) and e.dispatched_at = :dispatched_at
      order by e.id for update
    )
    update oncebox.outbox_entry e set dispatched_at = null from target where e.id = target.id""",
)

# A claim of a send counts an attempt and an unanswered call before anything is sent, and sets the next call to
# "status": if this worker dies anywhere after the commit, the row already tells the truth and the next step.
# A kind that this version does not know waits for a worker that does (F18, F19).
CLAIM: Final = named(
    "claim",
    f"""
    with candidate as (
      select e.id, e.call_id as lapsed_call, {NEXT_CALL} as kind
      from oncebox.outbox_entry e join oncebox.operation o on o.id = e.id
      where e.id = any(cast(:ids as uuid[])) and e.destination = :destination and o.kind = any(cast(:kinds as text[]))
        and e.ready_at <= now() and {NO_LIVE_LEASE}
        and not (e.attempts = 0 and (e.deadline <= now() or e.wanted <> 'deliver'))
        and e.claims < :poison_claims and (e.claims < 2 or cardinality(cast(:ids as uuid[])) = 1)
        and {HEAD_OF_KEY} and {RECEIVER_SEEN}
      order by e.id for update of e skip locked
    ), claimed as (
      update oncebox.outbox_entry e set
        call_id = case c.kind when 'send' then cast(:send_call as uuid)
                              when 'status' then cast(:status_call as uuid) else cast(:seal_call as uuid) end,
        calling = c.kind,
        lease_until = now() + make_interval(secs => :lease_s),
        dispatched_at = null,
        claims = e.claims + 1,
        attempts = e.attempts + cast(c.kind = 'send' as int),
        unanswered = e.unanswered + cast(c.kind = 'send' as int),
        next_call = case c.kind when 'send' then 'status' else c.kind end,
        wanted = case when e.wanted = 'deliver' and c.kind = 'seal' then 'abandon' else e.wanted end,
        wanted_reason = case when e.wanted = 'deliver' and c.kind = 'seal' then 'expired' else e.wanted_reason end
      from candidate c where e.id = c.id
      returning e.id, c.kind, e.call_id, e.wanted, e.wanted_reason, e.attempts, e.unanswered, e.retries, e.last_outcome
    ), started as (
      insert into oncebox.call (call_id, kind, destination, worker, operations)
      select call_id, kind, :destination, :worker, count(*) from claimed group by call_id, kind
    ), lapsed as (
      insert into oncebox.call_outcome (id, call_id, outcome, reason)
      select id, lapsed_call, 'unknown', 'lease_lapsed' from candidate where lapsed_call is not null
      on conflict do nothing
    )
    select c.id, c.kind, c.wanted, c.wanted_reason, c.attempts, c.unanswered, c.retries, c.last_outcome,
           o.operation_id, o.tenant, o.principal, o.kind as operation_kind, o.arguments, o.args_hash, o.deadline,
           (select count(*) from candidate where lapsed_call is not null) as lapsed
    from claimed c join oncebox.operation o on o.id = c.id
    order by c.id""",
)
