"""Which arrow of the one table a change of the state takes: the same two states, and an event that has this cause."""

from functools import cache
from typing import Final, NamedTuple

from oncebox_models.outcomes import Outcome
from oncebox_models.states import ARROWS, Arrow, State

CANCEL, CLAIM, LAPSE, PARK_POISON, SETTLE_UNSENT = "cancel", "claim", "lapse", "park_poison", "settle_unsent"

_NOT_EXECUTED: Final = {
    Outcome.REFUSED, Outcome.GONE, Outcome.UNAUTHENTICATED, Outcome.NOT_EXECUTED, Outcome.NOT_SENT,
}  # fmt: skip
_NO_VERDICT: Final = {Outcome.UNKNOWN, Outcome.IN_PROGRESS, LAPSE}
_CAUSES: Final[dict[str, set[str]]] = {
    "claim": {CLAIM},
    "cancel or deadline, nothing ever sent": {CANCEL, SETTLE_UNSENT},
    "receipt": {Outcome.RECEIPT},
    "sealed, after a refusal": {Outcome.SEALED},
    "key held for other arguments": {Outcome.CONFLICT},
    "sealed, as we asked": {Outcome.SEALED},
    "call never began, nothing ever sent": {Outcome.NOT_SENT},
    "answered: not executed": {*_NOT_EXECUTED},
    "a seal without an answer, no send in doubt": {*_NO_VERDICT},
    "no verdict, or the lease ran out": {*_NO_VERDICT},
    "access lost": {Outcome.UNAUTHENTICATED},
    "claimed again and again without an outcome": {PARK_POISON},
    "late answer: call never began, nothing ever sent": {Outcome.NOT_SENT},
    "late answer: not executed": {*_NOT_EXECUTED},
    "receipt of an earlier call": {Outcome.RECEIPT},
    "late answer: sealed after a refusal, or key held for other arguments": {
        Outcome.SEALED,
        Outcome.CONFLICT,
    },
    "late answer: sealed as we asked": {Outcome.SEALED},
    "late answer: access lost": {Outcome.UNAUTHENTICATED},
    "receipt, or access is back": {Outcome.RECEIPT},
    "access is back, sealed after a refusal": {Outcome.SEALED, Outcome.CONFLICT},
    "access is back, sealed as we asked": {Outcome.SEALED},
    "access is back, no send in doubt": {*_NOT_EXECUTED, *_NO_VERDICT},
    "access is back, a send in doubt": {*_NOT_EXECUTED, *_NO_VERDICT, Outcome.NOT_FOUND},
}


class Change(NamedTuple):
    """A change of the state that people see. cause: the outcome or the statement behind it."""

    source: State
    target: State
    cause: str

    def takes(self, arrow: Arrow) -> bool:
        """Whether it is this arrow. An event that has no known cause is nobody's."""
        return (self.source, self.target) == (arrow.source, arrow.target) and self.cause in _CAUSES.get(
            arrow.event, ()
        )


@cache
def is_arrow(change: Change) -> bool:
    """Whether the table allows this change."""
    return any(change.takes(arrow) for arrow in ARROWS)


def untaken(changes: frozenset[Change]) -> list[Arrow]:
    """The arrows that none of these changes took, but for the enqueue, with which everything begins."""
    return [
        arrow
        for arrow in ARROWS
        if arrow.source is not None and not any(change.takes(arrow) for change in changes)
    ]
