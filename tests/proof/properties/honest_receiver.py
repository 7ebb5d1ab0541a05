"""A receiver of class A in memory: it keeps its word, and nothing more. Packets reach it late, twice, or never."""

from dataclasses import dataclass, field
from typing import assert_never

from oncebox_models.calls import Outgoing
from oncebox_models.outcomes import Answer, Outcome, Receipt
from oncebox_models.states import CallKind


@dataclass(slots=True)
class HonestReceiver:
    """A key is none, a note or sealed. The switches are the weather: what is true at this moment.

    `passed`: the keys whose deadline has passed by the receiver's clock.
    """

    notes: dict[str, Receipt] = field(default_factory=dict[str, Receipt])
    sealed: set[str] = field(default_factory=set[str])
    passed: set[str] = field(default_factory=set[str])
    token_accepted: bool = True
    busy: bool = False
    granted: bool = True
    held: bool = False
    """Another execution of each key is alive."""
    made: list[str] = field(default_factory=list[str])
    """Keys in the order in which their notes were made."""

    def answer(self, kind: CallKind, operation: Outgoing) -> Answer:
        """What happens when a packet arrives now, and what is said of it."""
        if not self.token_accepted:
            return Answer(Outcome.UNAUTHENTICATED, "unauthenticated", http_status=401)
        if self.busy:
            return Answer(Outcome.NOT_EXECUTED, "busy", http_status=503)
        key = operation.operation_id
        if key in self.notes:
            return Answer(Outcome.RECEIPT, "replayed", self.notes[key], http_status=201)
        if key in self.sealed:
            return Answer(Outcome.SEALED, "operation_sealed", http_status=409)
        if self.held and kind is not CallKind.STATUS:
            return Answer(Outcome.IN_PROGRESS, "operation_in_progress", http_status=409)
        match kind:
            case CallKind.SEND:
                return self._execute(operation)
            case CallKind.STATUS:
                return Answer(Outcome.NOT_FOUND, "not_found", http_status=200)
            case CallKind.SEAL:
                self.sealed.add(key)
                return Answer(Outcome.SEALED, "sealed", http_status=200)
            case CallKind.VERIFY:
                raise AssertionError("a worker makes no such call")
            case _:
                assert_never(kind)

    def _execute(self, operation: Outgoing) -> Answer:
        key = operation.operation_id
        if not self.granted:
            return Answer(
                Outcome.REFUSED,
                "folder_not_writable",
                problem={"code": "folder_not_writable"},
                http_status=403,
            )
        if key in self.passed:
            return Answer(Outcome.GONE, "operation_expired", http_status=410)
        note = {
            "id": f"id-of-{key}",
            "folder": "drafts",
            "version": 1,
            "etag": "1-0",
            "location": f"/v1/notes/{key}",
        }
        self.notes[key] = Receipt(key, operation.args_hash, note)
        self.made.append(key)
        return Answer(Outcome.RECEIPT, "created", self.notes[key], http_status=201)

    def weather(self, sky: str) -> None:
        """From now on: `fair`, `token lost`, `busy`, `grant lost` or `keys held`."""
        self.token_accepted, self.busy = sky != "token lost", sky == "busy"
        self.granted, self.held = sky != "grant lost", sky == "keys held"
