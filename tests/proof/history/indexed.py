"""A history made ready for the rules: by key, in the order of asking, with what each statement claims."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, assert_never

from oncebox_models.states import Arrow, State
from tests.proof.history.statements import (
    AbsentSaid,
    CancelSaid,
    EnqueueSaid,
    ExitSaid,
    Key,
    LagSaid,
    NoAnswer,
    ReceiverSaid,
    RollbackSaid,
    Said,
    Statement,
    StateSaid,
)
from tests.proof.history.truth import Ledger, Note

States = frozenset[State]

SAVED: Final[States] = frozenset({State.SAVED})
UNSAVED: Final[States] = frozenset({State.REFUSED, State.NOT_SAVED})
_ON_ITS_WAY: Final[States] = frozenset({State.PENDING, State.SENDING, State.RETRYING})
_UNCLEAR: Final[States] = frozenset({State.UNKNOWN, State.NEEDS_REVIEW})

# As documented in docs/reference/cli.md, on purpose not taken from the code that is judged.
EXIT_CODES: Final[Mapping[str, Mapping[int, States]]] = {
    "status": {0: SAVED | _ON_ITS_WAY, 5: _UNCLEAR, 6: UNSAVED},
    "wait": {0: SAVED, 5: _UNCLEAR, 6: UNSAVED, 7: _ON_ITS_WAY},
}


class History:
    """Statements in the order of asking, the ledger, and which state may follow which."""

    def __init__(self, statements: Iterable[Statement], ledger: Ledger, arrows: Iterable[Arrow]) -> None:
        self.statements = sorted(statements, key=lambda said: said.asked_at)
        self.ledger = ledger
        self.reachable = _closure(arrows)
        self.by_key = self._by_key()
        self.known_since = self._known_since()

    def notes(self, key: Key) -> tuple[Note, ...]:
        """All notes under the key; usually none or one."""
        return self.ledger.notes.get(key, ())

    def committed_at(self, key: Key) -> float:
        """Since when there is a note under the key; infinity when there never is."""
        return min((note.committed_at for note in self.notes(key)), default=math.inf)

    def _by_key(self) -> dict[Key, list[Statement]]:
        found: dict[Key, list[Statement]] = defaultdict(list)
        for said in self.statements:
            key = key_of(said.body)
            if key is not None:
                found[key].append(said)
        return dict(found)

    def _known_since(self) -> dict[Key, float]:
        """When somebody first had an answer that shows that the operation is committed."""
        found: dict[Key, float] = {}
        for key, told in self.by_key.items():
            shown = [said.answered_at for said in told if outbox_states(said.body) is not None]
            if shown:
                found[key] = min(shown)
        return found


def key_of(body: Said) -> Key | None:
    """The operation that a statement is about; None for lag, and for a failure of no operation's."""
    match body:
        case LagSaid():
            return None
        case (
            StateSaid()
            | AbsentSaid()
            | EnqueueSaid()
            | RollbackSaid()
            | CancelSaid()
            | ReceiverSaid()
            | ExitSaid()
            | NoAnswer()
        ):
            return body.key
        case _:
            assert_never(body)


def outbox_states(body: Said) -> States | None:
    """In which states the outbox says that the operation may be; None when it says nothing about that."""
    match body:
        case StateSaid() | EnqueueSaid():
            return frozenset({body.state})
        case ExitSaid():
            return EXIT_CODES[body.command].get(body.exit_code)
        case CancelSaid():
            return frozenset({State.NOT_SAVED}) if body.what == "settled" else None
        case AbsentSaid() | RollbackSaid() | ReceiverSaid() | LagSaid() | NoAnswer():
            return None
        case _:
            assert_never(body)


def definite_states(body: Said) -> States | None:
    """The ends that a definite statement leaves open, of either side; None for what is not definite."""
    match body:
        case ReceiverSaid():
            return {"completed": SAVED, "sealed": UNSAVED}.get(body.state)
        case _:
            states = outbox_states(body)
            return states if states is not None and states <= SAVED | UNSAVED else None


def with_earlier(told: Sequence[Statement]) -> Iterator[tuple[Statement, list[Statement]]]:
    """Each statement, in the order of asking, with those that were answered before it was asked.

    The list grows from one to the next, and is the same object: read it before going on.
    """
    answered = sorted(told, key=lambda said: said.answered_at)
    earlier: list[Statement] = []
    for said in told:
        while len(earlier) < len(answered) and answered[len(earlier)].answered_at < said.asked_at:
            earlier.append(answered[len(earlier)])
        yield said, earlier


def _closure(arrows: Iterable[Arrow]) -> dict[State, States]:
    """For each state: itself and whatever can come after it."""
    after: dict[State, set[State]] = {state: {state} for state in State}
    listed = [(arrow.source, arrow.target) for arrow in arrows if arrow.source is not None]
    grown = True
    while grown:
        grown = False
        for source, target in listed:
            if not after[target] <= after[source]:
                after[source] |= after[target]
                grown = True
    return {state: frozenset(reached) for state, reached in after.items()}
