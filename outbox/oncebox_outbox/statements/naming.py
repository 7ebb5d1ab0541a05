"""How statements are named, and the conditions that several of them share."""

from typing import Final

from sqlalchemy import TextClause, text

from oncebox_models.states import NOTHING_EVER_SENT, sources

NAMES: Final[list[str]] = []
"""The names of all statements."""


def named(name: str, sql: str) -> TextClause:
    """A statement whose name travels in a leading comment: logs and `pg_stat_statements` show which one ran."""
    NAMES.append(name)
    return text(f"/* oncebox:{name} */ {sql}")


LIVE_STATE: Final = """
    case when e.review is not null then 'needs_review'
         when e.unanswered > case when e.calling = 'send' and e.lease_until > clock_timestamp() then 1 else 0 end
           then 'unknown'
         when e.lease_until > clock_timestamp() then 'sending'
         when e.attempts > 0 then 'retrying'
         else 'pending' end"""
"""The state of a live operation, from its entry `e` alone: a lapsed lease reads as unknown, by the clock,
and not by the transaction's start, which may lie long back in a caller's transaction. An earlier call without a
verdict reads as unknown, too, whatever is under way now: asking, sealing or sending again takes nothing back."""

_UNSENT_STATES: Final = ", ".join(f"'{state}'" for state in sources(NOTHING_EVER_SENT))
UNSENT: Final = f"{LIVE_STATE} in ({_UNSENT_STATES})"
"""Nothing can ever have reached the receiver: the states that the table lets end without asking it."""

STATE: Final = f"coalesce(o.final, case when e.id is null then 'unknown' else {LIVE_STATE} end)"
"""The state of operation `o` with its entry `e`, if any. Without either (impossible by constraint): unknown."""

REFUSAL: Final = """
    (select x.problem from oncebox.call_outcome x
     where e.wanted = 'refuse' and x.id = o.id and x.outcome = 'refused' order by x.at desc limit 1)"""
"""The receiver's own words on a refusal that is being made final, of operation `o` with its entry `e`."""

NO_LIVE_LEASE: Final = "(e.lease_until is null or e.lease_until <= now())"

NEXT_CALL: Final = "case when e.wanted <> 'deliver' or e.deadline <= now() then 'seal' else e.next_call end"
"""The kind of the next call. Past the deadline nothing is sent any more: the key is only sealed."""

# Looks at committed entries whatever their lock: choosing among unlocked ones lets the second overtake.
HEAD_OF_KEY: Final = """
    (e.ordering_key is null or not exists (
        select from oncebox.outbox_entry h
        where h.destination = e.destination and h.ordering_key = e.ordering_key and h.ordering_seq < e.ordering_seq
      ) and not exists (
        select from oncebox.operation r
        where r.final = 'needs_review' and r.destination = e.destination and r.ordering_key = e.ordering_key))"""

# A receiver that was never seen: what it admits and for how long it remembers is not known, so nothing is sent.
RECEIVER_SEEN: Final = """
    e.destination in (select d.name from oncebox.destination d where d.capabilities is not null)"""
