"""Writing down what a call brought: one guarded statement for all its operations."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from sqlalchemy import Engine

from oncebox_models.outcomes import Answer
from oncebox_models.schedule import Random
from oncebox_models.states import State
from oncebox_outbox import statements
from oncebox_outbox.claiming import Call
from oncebox_outbox.edge import database_errors
from oncebox_outbox.policy import Policy
from oncebox_outbox.rules import Again, Settle, checked, next_step

_PROBLEM_LENGTH: Final = 16_000
"""Most of a problem body that is kept as evidence, in characters."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What the statement did. An id of the call in neither was settled or taken over by someone else before.

    finals: id → final state. again: ids that stay live. due_now: those of `again` whose next call is due at once.
    lags_s: seconds from enqueue to the settling, one a final. violations: contradictions recorded.
    """

    finals: Mapping[UUID, State]
    again: frozenset[UUID]
    due_now: frozenset[UUID]
    lags_s: tuple[float, ...]
    violations: int


def settle(
    engine: Engine, policy: Policy, call: Call, answers: Mapping[UUID, Answer], random: Random
) -> Settled:
    """Apply one answer for each operation of `call`. Committed on return; running it twice changes nothing."""
    answers = {
        operation.outgoing.id: checked(
            answers[operation.outgoing.id], operation.outgoing.operation_id, operation.entry.args_hash
        )
        for operation in call.operations
    }
    # One draw a call: what was turned away together comes back together, as one call again.
    drawn = random()
    steps = {
        operation.outgoing.id: next_step(
            operation.entry, call.kind, answers[operation.outgoing.id], policy, lambda: drawn
        )
        for operation in call.operations
    }
    with engine.connect() as connection, database_errors():
        rows = connection.execute(statements.SETTLE, _parameters(call, answers, steps)).all()
    again = frozenset(row.id for row in rows if row.became == "again")
    return Settled(
        finals={row.id: State(row.became) for row in rows if row.became not in ("again", None)},
        again=again,
        due_now=frozenset(id for id in again if _due_now(steps[id])),
        lags_s=tuple(row.lag_s for row in rows if row.lag_s is not None),
        violations=max((row.violations for row in rows), default=0),
    )


def _due_now(step: Settle | Again) -> bool:
    return isinstance(step, Again) and step.delay_s == 0.0


def _parameters(
    call: Call, answers: Mapping[UUID, Answer], steps: Mapping[UUID, Settle | Again]
) -> dict[str, object]:
    """The columns of SETTLE's `answer`, one position an operation, and what concerns the whole call."""
    ids = [operation.outgoing.id for operation in call.operations]
    told = [answers[id] for id in ids]
    settles = [step if isinstance(step := steps[id], Settle) else None for id in ids]
    agains = [step if isinstance(step := steps[id], Again) else None for id in ids]
    return {
        "call_id": call.call_id,
        "kind": str(call.kind),
        "ids": ids,
        "outcomes": [str(answer.outcome) for answer in told],
        "reasons": [answer.reason for answer in told],
        "http_statuses": [answer.http_status for answer in told],
        "problems": [_storable(answer.problem) for answer in told],
        "receipts": [answer.receipt.text if answer.receipt is not None else None for answer in told],
        "args_hashes": [operation.entry.args_hash for operation in call.operations],
        "finals": [str(step.final) if step else None for step in settles],
        "final_reasons": [step.reason if step else None for step in settles],
        "next_calls": [str(step.next_call) if step else None for step in agains],
        "delays_s": [step.delay_s if step else None for step in agains],
        "wanted": [str(step.wanted) if step else None for step in agains],
        "wanted_reasons": [step.wanted_reason if step else None for step in agains],
        "verdicts": [int(step.verdict) if step else None for step in agains],
        "returned": [int(step.returned) if step else None for step in agains],
        "access_lost": [step.access_lost if step else None for step in agains],
        "violations": [step.violation for step in steps.values()],
    }


def _storable(problem: Mapping[str, object] | None) -> str | None:
    """A receiver's problem body as jsonb can hold it: whatever it sent must not keep its chunk from being settled."""
    if problem is None:
        return None
    try:
        told = json.dumps(problem, ensure_ascii=False, allow_nan=False)
    except ValueError:
        told = json.dumps({"detail": str(problem)[:_PROBLEM_LENGTH]}, ensure_ascii=False)
    if len(told) > _PROBLEM_LENGTH:
        told = json.dumps({"detail": told[:_PROBLEM_LENGTH], "truncated": True}, ensure_ascii=False)
    # jsonb holds no NUL and no lone surrogate.
    return told.encode(errors="replace").decode().replace("\\u0000", "?")


def settle_unsent(engine: Engine, *, limit: int) -> list[UUID]:
    """Settle as not saved what is past its deadline or given up and was never sent. Returns the ids."""
    with engine.connect() as connection, database_errors():
        return [row.id for row in connection.execute(statements.SETTLE_UNSENT, {"limit": limit})]


def park_poison(engine: Engine, policy: Policy, *, limit: int) -> list[UUID]:
    """Set aside for review what was claimed `policy.poison_claims` times without an outcome. Returns the ids."""
    parameters = {"poison_claims": policy.poison_claims, "limit": limit}
    with engine.connect() as connection, database_errors():
        return [row.id for row in connection.execute(statements.PARK_POISON, parameters)]
