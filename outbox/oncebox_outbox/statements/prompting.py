"""What a person may hurry: nothing is spent, no lease is touched, and no state says anything new by it."""

from typing import Final

from oncebox_models.tables import WAKE_CHANNEL
from oncebox_outbox.statements.naming import HEAD_OF_KEY, NEXT_CALL, NO_LIVE_LEASE, RECEIVER_SEEN, named

# `least`: what is due already keeps its place before those that became due after it.
_DUE_NOW: Final = "ready_at = least(e.ready_at, now()), dispatched_at = null"

RETRY: Final = named(
    "retry",
    f"""
    with target as (
      select e.id, {NO_LIVE_LEASE} as free, {NEXT_CALL} as next_call, not {HEAD_OF_KEY} as behind,
             {RECEIVER_SEEN} as receiver_seen
      from oncebox.outbox_entry e where e.id = :id for update
    ), due as (
      update oncebox.outbox_entry e set {_DUE_NOW} from target t where e.id = t.id and t.free
      returning e.id
    ), woken as (
      select pg_notify('{WAKE_CHANNEL}', '') where exists (select from due)
    )
    select t.free, t.next_call, t.behind, t.receiver_seen
    from target t cross join (select count(*) from woken) as notified""",
)

# Asked before anything is sent again, also where a resend was next. An entry that a worker holds is being asked.
RECONCILE: Final = named(
    "reconcile",
    f"""
    with target as (
      select e.id, e.review is not null as access_lost, e.unanswered > 0 as unknown
      from oncebox.outbox_entry e
      where {NO_LIVE_LEASE} and (e.unanswered > 0 or e.review is not null)
        and (cast(:id as uuid) is null or e.id = cast(:id as uuid))
        and (cast(:destination as text) is null or e.destination = :destination)
        and (cast(:tenant as text) is null and cast(:principal as text) is null or exists (
          select from oncebox.operation o
          where o.id = e.id and (cast(:tenant as text) is null or o.tenant = :tenant)
            and (cast(:principal as text) is null or o.principal = :principal)))
      order by e.id for update of e skip locked
    ), asked as (
      update oncebox.outbox_entry e set {_DUE_NOW},
             next_call = case when e.wanted = 'deliver' and t.unknown then 'status' else e.next_call end
      from target t where e.id = t.id
      returning t.access_lost
    ), woken as (
      select pg_notify('{WAKE_CHANNEL}', '') where exists (select from asked)
    )
    select count(*) filter (where not access_lost) as unknown, count(*) filter (where access_lost) as access_lost,
           (select count(*) from woken) as notified
    from asked""",
)
