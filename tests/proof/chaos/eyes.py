"""Looking at both databases while the run goes on: what is in flight, what is open. Straight, past every proxy."""

from typing import Any, Final, LiteralString

import psycopg

from oncebox_outbox.statements.naming import LIVE_STATE
from tests.proof.chaos.parties.database import Database

_CONNECT_S: Final = 2
_STATEMENT_MS: Final = 5000

LEASED: Final = "select count(*) from oncebox.outbox_entry where lease_until > clock_timestamp()"
# In the broker's hands, or on the way there.
HANDED_OVER: Final = "select count(*) from oncebox.outbox_entry where dispatched_at is not null"
# `worker` is host:pid:random.
LEASED_BY: Final = """
    select e.id from oncebox.outbox_entry e join oncebox.call c using (call_id)
    where e.lease_until > clock_timestamp() and split_part(c.worker, ':', 2) = %s"""
ANY_LEASED: Final = """
    select split_part(c.worker, ':', 2)::int
    from oncebox.outbox_entry e join oncebox.call c using (call_id)
    where e.lease_until > clock_timestamp() + interval '20 s' order by random() limit 1"""
WORKER_OF: Final = "select split_part(worker, ':', 2)::int from oncebox.call where call_id = %s"
STILL_HELD: Final = """
    select count(*) from oncebox.outbox_entry e join oncebox.call c using (call_id)
    where e.id = any(%s) and split_part(c.worker, ':', 2) = %s"""
ENQUEUING: Final = """
    select count(*) from pg_stat_activity
    where application_name like 'chaos agent %%' and xact_start is not null"""
ENQUEUING_BY: Final = """
    select count(*) from pg_stat_activity where application_name = %s and xact_start is not null"""
WRITING: Final = """
    select count(*) from pg_stat_activity where application_name = 'oncebox-notes' and xact_start is not null"""
WAITING_TO_WRITE: Final = """
    select count(*) from pg_locks where not granted and relation = 'note_version'::regclass"""
PROGRESS: Final = f"""
    select (select count(*) from oncebox.operation), (select count(*) from oncebox.operation where final = 'saved'),
           count(*), count(*) filter (where {LIVE_STATE} = 'unknown')
    from oncebox.outbox_entry e"""
OPEN: Final = "select count(*) from oncebox.outbox_entry"


class Eyes:
    """One connection for one thread. Every answer is None while the database gives none."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def rows(self, query: LiteralString, *parameters: object) -> list[tuple[Any, ...]] | None:
        try:
            if self._connection is None:
                self._connection = psycopg.connect(
                    self._database.url,
                    autocommit=True,
                    connect_timeout=_CONNECT_S,
                    application_name="chaos eyes",
                    options=f"-c statement_timeout={_STATEMENT_MS}",
                )
            return self._connection.execute(query, parameters).fetchall()
        except psycopg.OperationalError:
            self.close()
            return None

    def number(self, query: LiteralString, *parameters: object) -> int:
        """The one number of a question; 0 while nobody answers."""
        rows = self.rows(query, *parameters)
        return int(rows[0][0]) if rows else 0

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
