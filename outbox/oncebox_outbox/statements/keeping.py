"""Housekeeping: destinations and what they say of themselves, and pruning."""

from typing import Final

from oncebox_outbox.statements.naming import named

REGISTER_DESTINATION: Final = named(
    "register_destination",
    """
    insert into oncebox.destination (name, base_url, class) values (:name, :base_url, :class)
    on conflict (name) do update set base_url = excluded.base_url, class = excluded.class""",
)

# A receiver's identity is set once; another receiver behind the same name must not inherit its keys.
SEE_CAPABILITIES: Final = named(
    "see_capabilities",
    """
    update oncebox.destination set receiver = :receiver, capabilities = cast(:capabilities as jsonb),
           capabilities_seen_at = clock_timestamp()
    where name = :name and (receiver is null or receiver = :receiver)
      and not exists (select from oncebox.destination o where o.receiver = :receiver and o.name <> :name)
    returning name""",
)

RECEIVERS: Final = named(
    "receivers",
    "select name, receiver from oncebox.destination where name = :name or receiver = :receiver",
)

CAPABILITIES: Final = named(
    "capabilities",
    "select receiver, capabilities, capabilities_seen_at from oncebox.destination where name = :name",
)

PRUNE_LOCK: Final = named("prune_lock", "select pg_try_advisory_lock(7070318) as held")

PRUNE_UNLOCK: Final = named("prune_unlock", "select pg_advisory_unlock(7070318)")

# Identity, hash, final state, reason and receipt stay: "never will be" is a promise without an end.
PRUNE_OPERATIONS: Final = named(
    "prune_operations",
    """
    with old as (
      select o.id, o.intent_id from oncebox.operation o
      where o.final is not null and o.final <> 'needs_review' and o.arguments is not null
        and o.settled_at < now() - make_interval(secs => :older_than_s)
      order by o.settled_at limit :limit for update skip locked
    ), emptied as (
      update oncebox.operation o set arguments = null, problem = null from old where o.id = old.id
      returning o.id
    ), outcomes as (
      delete from oncebox.call_outcome x using old where x.id = old.id
    ), contexts as (
      update oncebox.intent i set context = null, trace_context = null
      from old where i.id = old.intent_id and (i.context is not null or i.trace_context is not null)
        -- Another operation of the intent may still need it: as evidence, or because it is live. (`offset 0`: looked
        -- up intent by intent through the index, never by a join that reads all operations.)
        and not exists (
          select from oncebox.operation o
          where o.intent_id = i.id and o.arguments is not null and o.id not in (select id from old)
          offset 0)
    )
    select count(*) as pruned from emptied""",
)

# A call goes when no kept outcome and no live entry points to it.
PRUNE_CALLS: Final = named(
    "prune_calls",
    """
    with old as (
      select c.call_id from oncebox.call c
      where c.started_at < now() - make_interval(secs => :older_than_s)
        and not exists (select from oncebox.call_outcome x where x.call_id = c.call_id)
        and not exists (select from oncebox.outbox_entry e where e.call_id = c.call_id)
      order by c.started_at limit :limit
    )
    delete from oncebox.call c using old where c.call_id = old.call_id""",
)

PRUNABLE: Final = named(
    "prunable",
    """
    select count(*) as operations from oncebox.operation o
    where o.final is not null and o.final <> 'needs_review' and o.arguments is not null
      and o.settled_at < now() - make_interval(secs => :older_than_s)""",
)
