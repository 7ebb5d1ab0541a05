"""The model's statements are the real ones: every row, every answer, on a real PostgreSQL, column for column."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import pytest

from oncebox_models.outcomes import Answer
from oncebox_models.states import CallKind
from oncebox_outbox.cancelling import cancel
from oncebox_outbox.claiming import Call, claim, dispatch, undispatch
from oncebox_outbox.prompting import reconcile, retry
from oncebox_outbox.rules import Claimed, checked, next_step
from oncebox_outbox.settling import park_poison, settle, settle_unsent
from tests.integration.outbox.scenes import no_jitter
from tests.proof.model import rows, wire
from tests.proof.model.reachable import HELD, KINDS, ROW_POLICY, STALE, reachable_rows, snapshots
from tests.proof.model.rows import HASH, Row
from tests.proof.model.stage import CALLS, Table, claimed_operation
from tests.proof.model.wire import KEY, Reply

ROWS = reachable_rows()
MANY = 1_000_000
CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class Told:
    """One answer to one call of one row. entry: what the caller was told at its claim."""

    row: Row
    entry: Claimed
    kind: CallKind
    reply: Reply

    def expected(self, caller: str) -> Row:
        answer = checked(wire.answer(self.kind, self.reply), KEY, HASH)
        step = next_step(self.entry, self.kind, answer, ROW_POLICY, no_jitter)
        return rows.settle(self.row, caller, answer, step) or self.row


def _compare(table: Table, before: Sequence[Row], after: Sequence[Row], ids: Sequence[UUID]) -> None:
    """The table holds `after` now, and says the states of the model."""
    for was, expected, (found, state) in zip(before, after, table.read(ids), strict=True):
        assert found == expected, f"of {was}"
        assert state is rows.state(expected), f"of {was}"


def test_a_row_says_the_state_that_the_model_says(table: Table) -> None:
    ids = table.fill(ROWS)
    _compare(table, ROWS, ROWS, ids)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("claims", range(ROW_POLICY.poison_claims + 1))
def test_claim(table: Table, late: bool, claims: int) -> None:
    some = [row for row in ROWS if row.claims == claims]
    policy = replace(ROW_POLICY, poison_claims=ROW_POLICY.poison_claims + claims // 2)
    ids = table.fill(some, late=late)
    # Two claims without an outcome, and an entry is only claimed alone.
    together = [ids] if claims < 2 else [[id] for id in ids]
    calls = [
        call
        for chosen in together
        for call in claim(table.sender.worker, policy, "notes", chosen, worker="w").calls
    ]
    claimed = [rows.claim(row, HELD, policy, late=late) for row in some]
    told = {
        operation.outgoing.id: (call.kind, replace(operation.entry, args_hash=HASH))
        for call in calls
        for operation in call.operations
    }
    assert told == {id: (one.kind, one.entry) for id, one in zip(ids, claimed, strict=True) if one}
    _compare(table, some, [one.row if one else row for row, one in zip(some, claimed, strict=True)], ids)


def _answers_of_the_holder(kind: CallKind) -> Iterator[Told]:
    for row in ROWS:
        if row.calling is kind:
            for entry in snapshots(row):
                for reply in wire.replies(kind):
                    yield Told(row, entry, kind, reply)


def _answers_of_a_stale_call(kind: CallKind) -> Iterator[Told]:
    replies = wire.replies(kind)
    for number, row in enumerate(ROWS):
        # A receipt for each row; of the rest, which all do nothing, each somewhere.
        for reply in (Reply.RECEIPT, replies[number % len(replies)]):
            yield Told(row, rows.claimed_values(Row(attempts=1, unanswered=1)), kind, reply)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("caller", "answers"), [(HELD, _answers_of_the_holder), (STALE, _answers_of_a_stale_call)]
)
def test_settle(
    table: Table, caller: str, answers: Callable[[CallKind], Iterator[Told]], kind: CallKind
) -> None:
    told = list(answers(kind))
    before = [one.row for one in told]
    ids = table.fill(before)
    for start in range(0, len(told), CHUNK):
        chunk = list(zip(ids, told, strict=True))[start : start + CHUNK]
        call = Call(
            CALLS[caller], kind, "notes", tuple(claimed_operation(id, one.entry) for id, one in chunk)
        )
        brought: dict[UUID, Answer] = {id: wire.answer(kind, one.reply) for id, one in chunk}
        settle(table.sender.worker, ROW_POLICY, call, brought, no_jitter)
    _compare(table, before, [one.expected(caller) for one in told], ids)


@pytest.mark.parametrize("late", [False, True])
def test_settle_unsent(table: Table, late: bool) -> None:
    ids = table.fill(ROWS, late=late)
    settle_unsent(table.sender.worker, limit=MANY)
    _compare(table, ROWS, [rows.settle_unsent(row, late=late) or row for row in ROWS], ids)


def test_park_poison(table: Table) -> None:
    ids = table.fill(ROWS)
    park_poison(table.sender.worker, ROW_POLICY, limit=MANY)
    _compare(table, ROWS, [rows.park_poison(row, ROW_POLICY) or row for row in ROWS], ids)


def test_cancel(table: Table) -> None:
    ids = table.fill(ROWS)
    with table.sender.agent.begin() as connection:
        for id in ids:
            cancel(connection, id)
    _compare(table, ROWS, [rows.cancel(row) or row for row in ROWS], ids)


def test_reconcile(table: Table) -> None:
    ids = table.fill(ROWS)
    with table.sender.agent.begin() as connection:
        reconcile(connection)
    _compare(table, ROWS, [rows.reconcile(row) or row for row in ROWS], ids)


def test_what_the_model_leaves_out_changes_nothing_that_it_holds(table: Table) -> None:
    """A retry, a dispatch and its taking back only hurry: no step of the model is theirs."""
    ids = table.fill(ROWS)
    with table.sender.agent.begin() as connection:
        for id in ids:
            retry(connection, id)
    stamped = dispatch(table.sender.worker, ROW_POLICY, low_mark=None, limit=MANY)
    assert stamped
    _compare(table, ROWS, ROWS, ids)
    assert undispatch(table.sender.worker, ids, stamped[0].dispatched_at) == len(stamped)
    _compare(table, ROWS, ROWS, ids)
