"""What a receiver answered about one operation in one call: a closed set of small values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self, cast


class Outcome(StrEnum):
    """The verdict of one call for one operation. Only the first three are proofs that settle it."""

    RECEIPT = "receipt"
    """The note exists under our key: a create, a replay, or a status that says completed."""
    SEALED = "sealed"
    """The key will never be executed."""
    CONFLICT = "conflict"
    """The receiver holds the key for other arguments."""
    REFUSED = "refused"
    """Answered no (400, 403, 412, 413 and their like). Not a proof: the next step is to seal."""
    GONE = "gone"
    """Past the deadline (410). Not a proof: the next step is to seal."""
    UNAUTHENTICATED = "unauthenticated"
    """Our token was not accepted (401). Nothing was executed."""
    NOT_EXECUTED = "not_executed"
    """Turned away for now (429, 503 that says so). Nothing was executed."""
    NOT_SENT = "not_sent"
    """The client never began to send. Nothing can have been executed by this call."""
    NOT_FOUND = "not_found"
    """A status answer that proves nothing: an earlier packet may still be on its way."""
    IN_PROGRESS = "in_progress"
    """Another execution of this key is alive right now."""
    UNKNOWN = "unknown"
    """Anything else after the first byte was written."""


SEND_ALONE: Final = ("batch_too_large", "batch_refused")
"""Reasons of NOT_EXECUTED that speak of a request as a whole: one operation's fault, so each is sent alone next."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The receiver's word that the note exists. `text` is its canonical JSON: equal receipts, equal bytes."""

    operation_id: str
    args_hash: str
    note: Mapping[str, object]

    @property
    def text(self) -> str:
        """Canonical JSON (sorted keys, no spaces): strings and small integers only, so these are JCS bytes."""
        value = {"operation_id": self.operation_id, "args_hash": self.args_hash, "note": dict(self.note)}
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read back what `text` wrote. Raises ValueError for anything else."""
        value: object = json.loads(text)
        fields = cast("Mapping[str, object]", value if isinstance(value, dict) else {})  # a JSON object
        operation_id, args_hash, note = (fields.get(name) for name in ("operation_id", "args_hash", "note"))
        if isinstance(operation_id, str) and isinstance(args_hash, str) and isinstance(note, dict):
            return cls(operation_id, args_hash, cast("Mapping[str, object]", note))
        raise ValueError(f"not a receipt: {text[:200]!r}")


@dataclass(frozen=True, slots=True)
class Answer:
    """One outcome with what came along. `reason` is one stable word for logs, tables and people."""

    outcome: Outcome
    reason: str
    receipt: Receipt | None = None
    problem: Mapping[str, object] | None = None
    """The receiver's problem body, kept as evidence and shown to people; None when there was none."""
    retry_after_s: float | None = None
    http_status: int | None = None
