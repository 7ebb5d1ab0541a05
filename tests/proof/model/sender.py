"""The sender: its row, the calls of two workers, its clock, and the rules that it and the receiver keep."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from oncebox_models.outcomes import Answer, Receipt
from oncebox_models.states import CallKind, State
from oncebox_outbox import rules as product
from oncebox_outbox import wording
from oncebox_outbox.policy import Policy
from oncebox_outbox.rules import Again, Claimed, Settle
from tests.proof.model import rows, wire
from tests.proof.model.receiver import ReceiverRules
from tests.proof.model.rows import HASH, Row
from tests.proof.model.wire import KEY, Reply


def bounded(most: int) -> Policy:
    """At most so many sends without a verdict, and claims without an outcome; a second 401 in a row is lasting."""
    return Policy(budget=most, poison_claims=most, access_lost_after=1)


POLICY: Final = bounded(2)
"""Small numbers that still have a first, a second and a last of everything."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a worker. began: it may have reached the receiver. lapsed: its lease ran out."""

    kind: CallKind
    entry: Claimed
    began: bool
    reply: Reply | None = None
    lapsed: bool = False

    @property
    def sends(self) -> bool:
        return self.began and self.kind is CallKind.SEND


@dataclass(frozen=True, slots=True)
class Side:
    """All that the sender is. late: the deadline has passed by its own clock."""

    row: Row = field(default_factory=Row)
    held: Call | None = None
    stale: Call | None = None
    late: bool = False


NextStep = Callable[[Claimed, CallKind, Answer, Policy, Callable[[], float]], Settle | Again]


@dataclass(frozen=True, slots=True)
class Protocol:
    """The rules of both parties as functions and switches; each can be replaced by one that keeps less.

    guarded: only the live call writes what is no receipt. one_key: every attempt carries the same key.
    calm: a world without stopped workers and late packets, for the rules that only save work.
    """

    claim: Callable[..., rows.ClaimedRow | None] = rows.claim
    settle: Callable[[Row, str, Answer, Settle | Again], Row | None] = rows.settle
    settle_unsent: Callable[..., Row | None] = rows.settle_unsent
    cancel: Callable[[Row], Row | None] = rows.cancel
    park_poison: Callable[[Row, Policy], Row | None] = rows.park_poison
    reconcile: Callable[[Row], Row | None] = rows.reconcile
    state: Callable[[Row], State] = rows.state
    answer: Callable[[CallKind, Reply], Answer] = wire.answer
    checked: Callable[[Answer, str, str], Answer] = product.checked
    next_step: NextStep = product.next_step
    guarded: bool = True
    one_key: bool = True
    receiver: ReceiverRules = field(default_factory=ReceiverRules)
    policy: Policy = POLICY
    calm: bool = False


def says(protocol: Protocol, row: Row) -> str:
    """The decisive words of the sentence that people and agents read."""
    receipt = Receipt(KEY, HASH, {}) if row.receipt else None
    wanted = None if row.final else row.wanted
    return wording.say(protocol.state(row), KEY, row.reason, receipt, None, wanted).split(":")[0].upper()
