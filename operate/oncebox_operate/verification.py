"""`verify`: walk through the receiver's notes and the sender's ledger, page by page, and compare them.

Safe while everything runs. The receiver is read before the sender where a note without an operation would be wrong,
and the sender before the receiver where a final word without its note would be.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol
from uuid import UUID

from sqlalchemy import Engine

from oncebox_destinations.protocol import StoredNote
from oncebox_models.outcomes import Receipt
from oncebox_models.states import State
from oncebox_operate import statements, verification_rules
from oncebox_operate.ledger import Key, Listed, NotesLedger, Written
from oncebox_operate.verification_rules import Entry, Found, Problem
from oncebox_outbox import statements as outbox_statements
from oncebox_outbox.edge import database_errors

PAGE: Final = 500
"""Operations or notes a page."""
_ORPHANS: Final = 10_000
_NAMED_VIOLATIONS: Final = 20


class Reads(Protocol):
    """How notes are read from the receiver, many at once; None where it hands none out."""

    def __call__(self, entries: Sequence[Entry]) -> Mapping[UUID, StoredNote | None]: ...


@dataclass(slots=True)
class Verified:
    """What was counted and found so far.

    states: operations by state. notes, duplicates, lost: counted by SQL on the receiver's tables alone, beside the
    comparison that names them. notes: versions written for these operations, second ones included. foreign: versions
    that others wrote. receiver_notes: all versions at the receiver. read: notes read over HTTP.
    """

    states: Counter[State] = field(default_factory=Counter[State])
    notes: int = 0
    duplicates: int = 0
    lost: int = 0
    foreign: int = 0
    receiver_notes: int = 0
    read: int = 0
    violations: int = 0
    problems: list[Problem] = field(default_factory=list[Problem])

    @property
    def operations(self) -> int:
        return self.states.total()

    @property
    def ok(self) -> bool:
        return not (self.problems or self.violations or self.lost or self.duplicates)

    def count(self, *found: Found) -> int:
        """How many problems of these kinds."""
        return sum(problem.found in found for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Verification:
    """Everything that one run needs. step: told how many operations and notes were looked at since the last time."""

    engine: Engine
    destination: str
    ledger: NotesLedger
    reads: Reads | None
    step: Callable[[int], None]

    def total(self) -> int:
        """How much there is to look at: operations and notes together, for a progress bar."""
        with self.engine.connect() as connection, database_errors():
            operations = connection.execute(statements.COUNT, {"destination": self.destination}).scalar_one()
        return operations + self.ledger.count()

    def run(self) -> Verified:
        """Compare everything. Raises the drivers' and the outbox's errors, and those of `reads`."""
        verified = Verified(receiver_notes=self.ledger.count())
        unexplained = self._unexplained()
        for entries in self._entries():
            self._compare(entries, unexplained, verified)
            self.step(len(entries))
        verified.foreign = sum(map(len, unexplained.values()))
        self._orphans(verified)
        self._violations(verified)
        return verified

    def _unexplained(self) -> dict[tuple[str, str, str], list[Listed]]:
        """Versions at the receiver whose key has no operation here, by tenant, principal and args_hash."""
        unexplained: dict[tuple[str, str, str], list[Listed]] = {}
        for page in self.ledger.pages(PAGE):
            known = self._known([listed.key for listed in page])
            for listed in page:
                if listed.key not in known:
                    same = (listed.key.tenant, listed.key.principal, listed.args_hash)
                    unexplained.setdefault(same, []).append(listed)
            self.step(len(page))
        return unexplained

    def _known(self, keys: Sequence[Key]) -> set[Key]:
        parameters = {
            "tenants": [key.tenant for key in keys],
            "principals": [key.principal for key in keys],
            "operation_ids": [key.operation_id for key in keys],
            "destination": self.destination,
        }
        with self.engine.connect() as connection, database_errors():
            return {keys[row.position - 1] for row in connection.execute(statements.KNOWN, parameters)}

    def _entries(self) -> Iterator[list[Entry]]:
        after: UUID | None = None
        while True:
            page = self._page(after)
            if not page:
                return
            yield page
            after = page[-1].id

    def _page(self, after: UUID | None) -> list[Entry]:
        parameters = {"destination": self.destination, "after": after, "limit": PAGE}
        with self.engine.connect() as connection, database_errors():
            rows = connection.execute(outbox_statements.LEDGER, parameters).all()
            contents = {
                row.id: bytes(row.content)
                for row in connection.execute(statements.CONTENT, {"ids": [row.id for row in rows]})
            }
        return [
            Entry(
                row.id,
                Key(row.tenant, row.principal, row.operation_id),
                row.args_hash,
                State(row.state),
                Receipt.parse(row.receipt) if row.receipt else None,
                contents.get(row.id),
            )
            for row in rows
        ]

    def _compare(
        self,
        entries: Sequence[Entry],
        unexplained: dict[tuple[str, str, str], list[Listed]],
        verified: Verified,
    ) -> None:
        keys = [entry.key for entry in entries]
        counted = self.ledger.counted(keys, [entry.state is State.SAVED for entry in entries])
        verified.notes += counted.notes
        verified.duplicates += counted.duplicates
        verified.lost += counted.lost
        written = self.ledger.written(keys)
        for entry in entries:
            rows = written.get(entry.key, [])
            verified.states[entry.state] += 1
            verified.problems += verification_rules.compare(entry, rows)
            # The same arguments of the same principal under a key that nobody here chose: a second note.
            twins = unexplained.pop((entry.key.tenant, entry.key.principal, entry.args_hash), [])
            verified.notes += len(twins)
            verified.duplicates += len(twins)
            verified.problems += [_twin(entry, twin) for twin in twins]
        self._read(entries, written, verified)

    def _read(
        self, entries: Sequence[Entry], written: Mapping[Key, Sequence[Written]], verified: Verified
    ) -> None:
        if self.reads is None:
            return
        saved = [entry for entry in entries if entry.receipt is not None]
        stored = self.reads(saved)
        verified.read += sum(note is not None for note in stored.values())
        for entry in saved:
            row = next(iter(written.get(entry.key, [])), None)
            verified.problems += verification_rules.compare_read(entry, stored[entry.id], row)

    def _orphans(self, verified: Verified) -> None:
        with self.engine.connect() as connection, database_errors():
            rows = connection.execute(outbox_statements.ORPHANS, {"limit": _ORPHANS})
            verified.problems += [
                Problem(Found.ORPHAN, row.operation_id, row.id, "it is open, and has no outbox entry")
                for row in rows
            ]

    def _violations(self, verified: Verified) -> None:
        with self.engine.connect() as connection, database_errors():
            counted = connection.execute(outbox_statements.VIOLATIONS).all()
            last = connection.execute(statements.LAST_VIOLATIONS, {"limit": _NAMED_VIOLATIONS}).all()
        verified.violations = sum(row.violations for row in counted)
        verified.problems += [
            Problem(
                Found.VIOLATION, row.operation_id, row.id, f"{row.kind}, recorded at {row.at.isoformat()}"
            )
            for row in last
        ]


def _twin(entry: Entry, twin: Listed) -> Problem:
    detail = f"note {twin.note_id} under key {twin.key.operation_id!r} was written from the same arguments"
    return Problem(Found.DUPLICATE, entry.key.operation_id, entry.id, detail)
