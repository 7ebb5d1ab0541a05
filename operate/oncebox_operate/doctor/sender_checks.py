"""The sender's database: can it be trusted, are its tables this version's, and does what is in it move."""

from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection

from oncebox_operate import migrate
from oncebox_operate.database_failures import Server
from oncebox_operate.doctor.checks import Check, fail, ok, warn
from oncebox_operate.durations import shown
from oncebox_outbox import examining, insights

_SLOW_S: Final = 60.0
"""Age of the oldest open operation from which on a person should know."""
_LATE_S: Final = 3600.0
"""Age from which on it is a fault."""
_PSQL: Final = 'psql "$ONCEBOX_DATABASE_URL" -c'


def of_server(connection: Connection, server: Server) -> Iterator[Check]:
    """The server and its settings."""
    seen = examining.server(connection)
    where = f"PostgreSQL {seen.version.split()[0]} at {server}"
    if seen.supported:
        yield ok("database", where)
    else:
        yield fail("database", f"{where} is older than 15; use a newer server", "oncebox migrate sql")
    if seen.read_only:
        yield fail(
            "primary",
            f"{server} is read-only; is it a standby? Name the primary",
            "export ONCEBOX_DATABASE_URL=postgresql://USER@PRIMARY/oncebox",
        )
    yield from _durability(seen)


def _durability(seen: examining.Server) -> Iterator[Check]:
    for name, value in seen.forgetful.items():
        what = f"{name} is {value}: what was confirmed may be lost"
        if name == "synchronous_commit":
            yield fail("durability", what, f"{_PSQL} 'ALTER ROLE CURRENT_USER SET {name} = on'")
        else:
            yield fail(
                "durability",
                f"{what}. Set it, and restart the server",
                f"{_PSQL} 'ALTER SYSTEM SET {name} = on'",
            )
    if seen.asynchronous_standbys:
        yield warn(
            "durability",
            f"{seen.asynchronous_standbys} standbys replicate asynchronously: failing over to one may lose what was"
            " confirmed",
            f"{_PSQL} \"ALTER SYSTEM SET synchronous_standby_names = '*'\"",
        )
    elif not seen.forgetful:
        yield ok("durability", "fsync, full_page_writes and synchronous_commit are on")


def of_tables(connection: Connection) -> Check:
    """The tables' revision, and the one that this code wants."""
    found, wanted = examining.revision(connection), migrate.head()
    if found == wanted:
        return ok("tables", f"at revision {found}")
    if found is None:
        return fail("tables", "there are none in this database", "oncebox migrate up")
    return fail("tables", f"at revision {found}; this version wants {wanted}", "oncebox migrate up")


def of_contents(connection: Connection) -> Iterator[Check]:
    """Operations that nothing moves on, contradictions, and how old the oldest is. Needs the tables."""
    seen, lag = examining.contents(connection), insights.lag(connection)
    yield _orphans(seen)
    yield _violations(lag)
    yield _age(lag)
    yield _unknown(seen, lag)
    if seen.in_review:
        yield warn(
            "review",
            f"{seen.in_review:,} operations wait for a person's decision",
            "oncebox list --state needs_review",
        )
    yield from _roles(seen, lag)


def _orphans(seen: examining.Contents) -> Check:
    if not seen.orphans:
        return ok("orphans", "every open operation has an entry")
    return fail(
        "orphans",
        f"{len(seen.orphans)} open operations or more have no entry, and nothing would move them on",
        f"oncebox show {seen.orphans[0]}",
    )


def _violations(lag: insights.Lag) -> Check:
    if not lag.violations:
        return ok("violations", "no contradiction is recorded")
    kinds = ", ".join(f"{kind} {count}" for kind, count in lag.violations.items())
    return fail("violations", f"contradictions are recorded: {kinds}", "oncebox verify")


def _age(lag: insights.Lag) -> Check:
    if not lag.entries:
        return ok("oldest", "nothing is open")
    says = f"{lag.entries:,} open, the oldest {shown(lag.oldest_age_s)} old"
    if lag.oldest_age_s > _LATE_S:
        return fail("oldest", says, "oncebox lag")
    return warn("oldest", says, "oncebox lag") if lag.oldest_age_s > _SLOW_S else ok("oldest", says)


def _unknown(seen: examining.Contents, lag: insights.Lag) -> Check:
    if seen.stuck:
        says = f"{seen.stuck:,} are of unknown outcome, and nobody has asked for {shown(examining.STUCK_S)}"
        return fail("unknown", f"{says}. Are relay and worker running?", "oncebox list --state unknown")
    if lag.unknown:
        return ok("unknown", f"{lag.unknown:,} are of unknown outcome and are being asked about")
    return ok("unknown", "no outcome is unknown")


def _roles(seen: examining.Contents, lag: insights.Lag) -> Iterator[Check]:
    # A connection pooler may hide their names: a warning, whatever waits.
    waits = f", and {lag.entries:,} operations wait" if lag.entries else ""
    for role, here in (("relay", seen.relay), ("worker", seen.worker)):
        if here:
            yield ok(role, "one is connected to the database now")
        else:
            yield warn(role, f"none is connected to the database now{waits}", f"oncebox {role}")
