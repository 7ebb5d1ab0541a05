"""What was said about the backlog, against the operations that were open all the time while it was asked."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.proof.history.counting import Beyond
from tests.proof.history.indexed import History
from tests.proof.history.statements import LagSaid, Statement
from tests.proof.history.truth import Operation
from tests.proof.history.violations import Finding

# Ages are printed in milliseconds.
ROUNDED_S: Final = 0.0005 + 1e-6


class _Told(NamedTuple):
    """A statement on lag, with what was open from before it was asked until after it was answered."""

    said: Statement
    lag: LagSaid
    open: int
    oldest_created_at: float


def lag_too_few(history: History) -> Iterator[Finding]:
    """Every open operation counts, whatever it waits for."""
    for told in _told(history):
        if told.lag.entries < told.open:
            yield Finding(None, f"{told.lag.entries} open were said; there were {told.open}", (told.said,))


def lag_too_young(history: History) -> Iterator[Finding]:
    """The age counts from the enqueue of the oldest open operation."""
    for told in _told(history):
        least_s = told.said.asked_at - told.oldest_created_at
        if told.lag.oldest_age_s < least_s - ROUNDED_S:
            yield Finding(
                None, f"{told.lag.oldest_age_s:.3f} s were said; it was {least_s:.3f} s or more", (told.said,)
            )


def lag_out_of_nothing(history: History) -> Iterator[Finding]:
    """Nor more operations, nor older ones, than were ever enqueued; and the parts make the whole."""
    created = sorted(operation.created_at for operation in history.ledger.operations.values())
    for said in history.statements:
        match said.body:
            case LagSaid() as lag:
                most = bisect_right(created, said.answered_at)
                oldest_s = said.answered_at - created[0] if most else 0.0
                if lag.entries > most:
                    yield Finding(None, f"{lag.entries} open were said; {most} were ever there", (said,))
                elif lag.oldest_age_s > oldest_s + ROUNDED_S:
                    yield Finding(None, f"older than anything: {lag.oldest_age_s:.3f} s", (said,))
                elif lag.by_state and sum(lag.by_state.values()) != lag.entries:
                    yield Finding(None, f"{lag.by_state} are not {lag.entries}", (said,))
            case _:
                pass


def _told(history: History) -> Iterator[_Told]:
    """Operations join in the order in which they became known; each statement sees those known before it was asked."""
    known = sorted(_known(history), key=lambda one: one[0])
    open_ = Beyond(operation.open_until for _, operation in known)
    joined = 0
    for said in history.statements:
        match said.body:
            case LagSaid() as lag:
                while joined < len(known) and known[joined][0] < said.asked_at:
                    operation = known[joined][1]
                    open_.add(operation.open_until, operation.created_at)
                    joined += 1
                yield _Told(said, lag, *open_.after(said.answered_at))
            case _:
                pass


def _known(history: History) -> Iterator[tuple[float, Operation]]:
    operations = history.ledger.operations
    for key, since in history.known_since.items():
        # One that is not in the ledger is `enqueue_lost`.
        if key in operations:
            yield since, operations[key]
