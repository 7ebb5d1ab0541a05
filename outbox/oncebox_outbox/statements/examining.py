"""What a doctor asks of the sender's database. None of these locks or changes anything."""

from typing import Final

from oncebox_outbox.statements.naming import LIVE_STATE, NO_LIVE_LEASE, named

# `standbys` without synchronous_standby_names are asynchronous: failing over to one may forget a confirmed commit.
SERVER: Final = named(
    "server",
    """
    select current_setting('server_version') as version, cast(current_setting('server_version_num') as int) as number,
           current_setting('fsync') as fsync, current_setting('full_page_writes') as full_page_writes,
           current_setting('synchronous_commit') as synchronous_commit,
           current_setting('transaction_read_only') = 'on' as read_only,
           case when current_setting('synchronous_standby_names') = '' then
             (select count(*) from pg_stat_replication where application_name not like 'pg\\_%') else 0 end
             as asynchronous_standbys""",
)

HAS_REVISION: Final = named(
    "has_revision", "select to_regclass('oncebox.alembic_version') is not null as has"
)

REVISION: Final = named("revision", "select version_num from oncebox.alembic_version")

# Who is connected at this moment, by the names that relays and workers give their connections.
ROLES: Final = named(
    "roles",
    """
    select coalesce(bool_or(application_name like 'oncebox relay%'), false) as relay,
           coalesce(bool_or(application_name ~ '^oncebox (worker|watch) '), false) as worker
    from pg_stat_activity where datname = current_database()""",
)

# Unknown and due for so long: its worker is gone, and no other came to ask. Behind it is the only row of its ordering
# key that was ever sent, so none of these waits for another.
STUCK: Final = named(
    "stuck",
    f"""
    select count(*) as stuck from oncebox.outbox_entry e
    where {LIVE_STATE} = 'unknown' and {NO_LIVE_LEASE}
      and greatest(e.ready_at, e.lease_until) <= now() - make_interval(secs => :stuck_s)""",
)

IN_REVIEW: Final = named(
    "in_review", "select count(*) as in_review from oncebox.operation o where o.final = 'needs_review'"
)

CLOCK: Final = named("clock", "select clock_timestamp() as now")
