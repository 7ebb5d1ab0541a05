"""What a note service of class A answers, as a small model: keys, notes with versions, grants.

The model never looks at the service: it is told what was asked, says what the answer must be, and learns from a
receipt only what it cannot know (the id, the tag and the time of a note).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

import rfc8785


@dataclass(frozen=True, slots=True)
class Scope:
    """A principal of a tenant: every key is one of its own."""

    tenant: str
    principal: str

    def __str__(self) -> str:
        return f"{self.tenant}/{self.principal}"


@dataclass(frozen=True, slots=True)
class Caller:
    """A token; `tenants` are those that a delegate may act in, and `own` is then nobody to act for."""

    token: str
    own: Scope
    tenants: tuple[str, ...] = ()


class Due(Enum):
    """Where the deadline of a request lies."""

    AHEAD = 3600
    PASSED = -60
    TOO_FAR = 604_800 + 3600


@dataclass(frozen=True, slots=True)
class Write:
    """One operation as it is sent. A revision without `if_match` in its arguments is sent without the tag."""

    key: str
    kind: Literal["note.create", "note.revise"]
    arguments: dict[str, str]
    due: Due = Due.AHEAD

    @property
    def args_hash(self) -> str:
        hashed = {"v": 1, "kind": self.kind, "arguments": self.arguments}
        return hashlib.sha256(rfc8785.dumps(hashed)).hexdigest()


@dataclass(frozen=True, slots=True)
class Record:
    """What the service keeps of a key for good. `receipt` is the body that made it; a tombstone has none."""

    args_hash: str | None
    receipt: dict[str, Any] | None = None
    body: bytes | None = None

    @property
    def state(self) -> str:
        return "sealed" if self.receipt is None else "completed"

    @property
    def status(self) -> int:
        return 201 if self.receipt is not None and self.receipt["note"]["version"] == 1 else 200


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a note as it can be read."""

    scope: Scope
    key: str
    title: str
    text: str
    ref: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer is a problem."""

    status: int
    code: str
    state: str = "unknown"
    permitted: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """The answer is that of the request which made the record."""

    record: Record


@dataclass(frozen=True, slots=True)
class Executed:
    """The answer is a receipt for a new version of the folder's note."""

    folder: str
    version: int


Expected = Refused | Replayed | Executed
_EXPIRED = Refused(410, "operation_expired", "not_found")
_NOT_FOUND = Refused(404, "note_not_found", "not_found")
_SEALED = Refused(409, "operation_sealed", "sealed")


@dataclass(slots=True)
class Model:
    """Everything that one example has brought about."""

    records: dict[tuple[Scope, str], Record] = field(default_factory=dict[tuple[Scope, str], Record])
    notes: dict[str, list[Version]] = field(default_factory=dict[str, list[Version]])
    grants: set[tuple[Scope, str]] = field(default_factory=set[tuple[Scope, str]])
    revoked: set[str] = field(default_factory=set[str])

    def acting(self, caller: Caller, named: str | None) -> Scope | Refused:
        """For whom a request or an item is."""
        if named is None:
            return Refused(400, "invalid_argument") if caller.tenants else caller.own
        tenant, _, principal = named.partition("/")
        scope = Scope(tenant, principal)
        permitted = tenant in caller.tenants if caller.tenants else scope == caller.own
        return scope if permitted else Refused(401, "unauthenticated")

    def writes(self, asked: Sequence[tuple[Scope | Refused, Write]]) -> list[Expected]:
        """The answers to the items of one request, all judged by what was there before it."""
        expected: list[Expected] = []
        seen: set[tuple[Scope, str]] = set()
        revised: set[str] = set()
        for scope, write in asked:
            answer = scope if isinstance(scope, Refused) else _syntax(write)
            if isinstance(scope, Scope) and answer is None:
                answer = Refused(400, "invalid_argument") if (scope, write.key) in seen else None
                seen.add((scope, write.key))
                answer = answer or self._decide(scope, write, revised)
            assert answer is not None
            expected.append(answer)
        return expected

    def _decide(self, scope: Scope, write: Write, revised: set[str]) -> Expected:
        record = self.records.get((scope, write.key))
        if record is not None:
            if record.args_hash not in (None, write.args_hash):
                return Refused(422, "argument_conflict", record.state)
            return Replayed(record) if record.receipt is not None else _SEALED
        permitted = self.permitted(scope)
        if write.kind == "note.create":
            folder, version = write.arguments["folder"], 1
            if folder not in permitted:
                return Refused(403, "folder_not_writable", "not_found", tuple(permitted))
        else:
            note_id = write.arguments["note_id"]
            latest = self.visible(scope, note_id)
            if latest is None:
                return _NOT_FOUND
            if note_id in revised:
                return Refused(503, "busy")
            if latest.ref["etag"] != write.arguments["if_match"]:
                return Refused(412, "precondition_failed", "not_found")
            revised.add(note_id)
            folder, version = latest.ref["folder"], latest.ref["version"] + 1
        return _EXPIRED if write.due is Due.PASSED else Executed(folder, version)

    def learn(self, scope: Scope, write: Write, receipt: dict[str, Any], body: bytes) -> None:
        """The service has made this version."""
        self.records[scope, write.key] = Record(write.args_hash, receipt, body)
        ref = receipt["note"]
        made = Version(scope, write.key, write.arguments["title"], write.arguments["text"], ref)
        self.notes.setdefault(ref["id"], []).append(made)

    def seal(self, scope: Scope, key: str, args_hash: str | None, due: Due) -> Record | Refused:
        if due is Due.TOO_FAR:
            return Refused(400, "deadline_invalid")
        return self.records.setdefault((scope, key), Record(args_hash))

    def forget_tombstones(self) -> int:
        """All of them are old enough; how many there were."""
        old = [place for place, record in self.records.items() if record.receipt is None]
        for place in old:
            del self.records[place]
        return len(old)

    def permitted(self, scope: Scope) -> list[str]:
        return sorted(folder for of, folder in self.grants if of == scope)

    def visible(self, scope: Scope, note_id: str) -> Version | None:
        """The latest version, if there is such a note in a folder that is granted now."""
        if note_id not in self.notes:
            return None
        latest = self.notes[note_id][-1]
        granted = (scope, latest.ref["folder"]) in self.grants
        return latest if granted and latest.scope.tenant == scope.tenant else None

    def read(self, scope: Scope, note_id: str, version: int | None) -> Version | Refused:
        latest = self.visible(scope, note_id)
        if latest is None:
            return _NOT_FOUND
        if version is None:
            return latest
        versions = self.notes[note_id]
        return versions[version - 1] if version <= len(versions) else _NOT_FOUND


def _syntax(write: Write) -> Refused | None:
    """What is wrong with the request itself; the deadline comes first."""
    if write.due is Due.TOO_FAR:
        return Refused(400, "deadline_invalid")
    if write.kind == "note.revise" and "if_match" not in write.arguments:
        return Refused(428, "precondition_required")
    return None
