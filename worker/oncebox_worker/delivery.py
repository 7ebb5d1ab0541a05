"""Delivering a chunk: claim what is still due, ask the receiver, settle. The heart of a worker.

No transaction is open while a call is under way. Dying anywhere in here costs time, never a note and never the truth:
the claim counted the attempt before the first byte, and a lapsed lease reads as unknown by the clock.
"""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never
from uuid import UUID

from sqlalchemy import Engine

from oncebox_destinations.protocol import Destination
from oncebox_models.outcomes import Answer
from oncebox_models.schedule import RetrySchedule
from oncebox_models.states import CallKind
from oncebox_outbox import claiming, settling
from oncebox_outbox.claiming import Call
from oncebox_outbox.engine import UNAVAILABLE
from oncebox_outbox.errors import RetryTransaction
from oncebox_outbox.policy import Policy
from oncebox_outbox.settling import Settled
from oncebox_worker.call_loop import CallLoop
from oncebox_worker.events import Event
from oncebox_worker.logs import Log

log = Log(__name__)

_ROUNDS: Final = 4
"""Calls in a row for one chunk while something is due at once (send, then seal what was refused)."""
_SETTLE_TRIES: Final = 6
"""Tries to write an answer down while the database is away; then the lease lapses, and the receiver is asked."""
_SETTLE_SCHEDULE: Final = RetrySchedule(0.2, 3.0)


@dataclass(frozen=True, slots=True)
class Delivered:
    """What became of a chunk: operations claimed, settled, and left for a later call."""

    claimed: int
    settled: int
    again: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """Delivers chunks of the destinations it knows. Safe for many threads at once."""

    engine: Engine
    policy: Policy
    destinations: Mapping[str, Destination]
    loop: CallLoop
    worker: str

    def deliver(self, destination: str, ids: Sequence[UUID]) -> Delivered:
        """Move the operations `ids` on as far as they go now. Doing it twice, or twice at once, is harmless."""
        claimed = settled = again = 0
        for _ in range(_ROUNDS):
            claim = claiming.claim(self.engine, self.policy, destination, ids, worker=self.worker)
            if claim.lapsed:
                log.warning(Event.LEASE_LAPSED, destination=destination, operations=claim.lapsed)
            due_now: list[UUID] = []
            for result in self._settle_all(claim.calls):
                settled += len(result.finals)
                again += len(result.again)
                due_now += result.due_now
            claimed += sum(len(call.operations) for call in claim.calls)
            if not due_now:
                break
            ids = due_now
        return Delivered(claimed, settled, again)

    def _settle_all(self, calls: Sequence[Call]) -> list[Settled]:
        """Make the calls of one claim side by side, since their leases began together; then settle each."""
        if not calls:
            return []
        started = time.monotonic()
        answers = self.loop.run(self._ask_all(calls))
        took_ms = round((time.monotonic() - started) * 1000, 1)
        return [self._settle(call, told, took_ms) for call, told in zip(calls, answers, strict=True)]

    async def _ask_all(self, calls: Sequence[Call]) -> list[Mapping[UUID, Answer]]:
        return await asyncio.gather(*(self._ask(call) for call in calls))

    async def _ask(self, call: Call) -> Mapping[UUID, Answer]:
        receiver = self.destinations[call.destination]
        operations = [operation.outgoing for operation in call.operations]
        match call.kind:
            case CallKind.SEND:
                return await receiver.send(call.call_id, operations)
            case CallKind.STATUS:
                return await receiver.status(call.call_id, operations)
            case CallKind.SEAL:
                return await receiver.seal(call.call_id, operations)
            case CallKind.VERIFY:
                raise ValueError("a verifying call is never claimed")
            case _:
                assert_never(call.kind)

    def _settle(self, call: Call, answers: Mapping[UUID, Answer], took_ms: float) -> Settled:
        for retries in range(_SETTLE_TRIES):
            try:
                settled = settling.settle(self.engine, self.policy, call, answers, random.random)
                break
            except (*UNAVAILABLE, RetryTransaction) as error:
                # The answers in hand may be receipts: worth a wait. Beyond the lease a receipt still counts.
                log.warning(
                    Event.DATABASE_UNREACHABLE, during="settle", call_id=call.call_id, error=_brief(error)
                )
                if retries == _SETTLE_TRIES - 1:
                    raise
                time.sleep(_SETTLE_SCHEDULE.delay_s(retries, random.random))
        else:
            raise AssertionError("the loop ends by break or raise")
        _log_call(call, answers, settled, took_ms)
        return settled


def _log_call(call: Call, answers: Mapping[UUID, Answer], settled: Settled, took_ms: float) -> None:
    outcomes: dict[str, int] = {}
    for answer in answers.values():
        outcomes[answer.outcome] = outcomes.get(answer.outcome, 0) + 1
    log.info(
        Event.CALL_FINISHED,
        call_id=call.call_id,
        kind=call.kind,
        destination=call.destination,
        operations=len(call.operations),
        outcomes=outcomes,
        settled=len(settled.finals),
        took_ms=took_ms,
    )
    if settled.violations:
        log.error(Event.INVARIANT_VIOLATED, call_id=call.call_id, violations=settled.violations)


def _brief(error: Exception) -> str:
    return str(error).splitlines()[0][:200]
