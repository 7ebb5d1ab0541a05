"""Every row that the sender's statements lead to within small bounds, whatever a receiver answers."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Final

from oncebox_models.states import CallKind, Wanted
from oncebox_outbox.rules import Claimed, checked, next_step
from tests.proof.model import rows, wire
from tests.proof.model.rows import HASH, Row
from tests.proof.model.sender import POLICY
from tests.proof.model.wire import KEY, Reply

# Two in a row, so that the first "not authenticated" and the lasting one are told apart.
ROW_POLICY: Final = replace(POLICY, access_lost_after=2)
HELD, STALE = "held", "stale"
KINDS: Final = (CallKind.SEND, CallKind.STATUS, CallKind.SEAL)
_MOST: Final = 2


@cache
def reachable_rows() -> tuple[Row, ...]:
    """All rows with at most two attempts and two outcomes, in an order that does not change."""
    found, todo = {Row()}, [Row()]
    while todo:
        for row in _next(todo.pop()):
            if row not in found and row.attempts <= _MOST and row.retries <= _MOST:
                found.add(row)
                todo.append(row)
    return tuple(sorted(found, key=repr))


def snapshots(row: Row) -> tuple[Claimed, ...]:
    """What the holder of the lease may have been told at its claim: a cancel may have come since."""
    now = rows.claimed_values(row)
    if row.wanted is not Wanted.ABANDON or row.calling is CallKind.SEAL:
        return (now,)
    return (now, replace(now, wanted=Wanted.DELIVER, wanted_reason=None))


def _next(row: Row) -> Iterator[Row]:
    for late in (False, True):
        claimed = rows.claim(row, HELD, ROW_POLICY, late=late)
        after = (claimed and claimed.row, rows.settle_unsent(row, late=late))
        yield from filter(None, after)
    after = (rows.cancel(row), rows.park_poison(row, ROW_POLICY), rows.reconcile(row), rows.lapse(row))
    yield from filter(None, after)
    kinds = KINDS if row.calling is None else (row.calling,)
    for kind in kinds:
        for reply in wire.replies(kind):
            answer = checked(wire.answer(kind, reply), KEY, HASH)
            for entry in snapshots(row):
                step = next_step(entry, kind, answer, ROW_POLICY, lambda: 0.0)
                callers = (STALE,) if row.calling is None else (HELD, STALE)
                honest = reply is not Reply.RECEIPT or row.final is None
                after = (rows.settle(row, caller, answer, step) for caller in callers if honest)
                yield from filter(None, after)
