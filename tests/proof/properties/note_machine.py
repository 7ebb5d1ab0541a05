"""Random histories of one note service over HTTP, each answer compared with the model's."""

import itertools
import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, assert_never

import httpx2
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from oncebox_notes import purging
from oncebox_notes.administration import Connection
from tests.notes.running import moment
from tests.proof.properties.note_answers import (
    check_note,
    check_problem_answer,
    check_problem_body,
    check_state_body,
)
from tests.proof.properties.note_model import (
    Due,
    Executed,
    Expected,
    Model,
    Record,
    Refused,
    Replayed,
    Scope,
    Write,
)
from tests.proof.properties.note_parties import PRINCIPALS, RIGHT_WAYS, WRONG_WAYS, Parties, Way

Body = dict[str, Any]

_NO_NOTE: Final = "00000000-0000-7000-8000-000000000000"
_UNKNOWN: Final = Refused(401, "unauthenticated")
_BUSY: Final = Refused(409, "operation_in_progress", "in_progress")

ways = st.sampled_from([*RIGHT_WAYS * 4, *WRONG_WAYS])
principals = st.sampled_from(PRINCIPALS)
keys = st.sampled_from(["note-1", "note-2", "note-3", "note-4", "note-5"])
folders = st.sampled_from(["drafts", "drafts", "drafts", "archive"])
texts = st.sampled_from(["Reef B.", "Reef C."])
dues = st.sampled_from([*[Due.AHEAD] * 6, Due.PASSED, Due.TOO_FAR])
tags = st.sampled_from(["right", "right", "right", "right", "old", "wrong", "missing"])
places = st.integers(0, 2)
creates = st.builds(
    lambda key, folder, text, due: Write(
        key, "note.create", {"folder": folder, "title": "Reef", "text": text}, due
    ),
    *(keys, folders, texts, dues),
)
revisions = st.tuples(keys, places, tags, texts, dues)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all examples share. Connections are in autocommit mode; `met` counts what was expected of writes."""

    window_seconds: int
    http: httpx2.Client
    operator: Connection
    holder: Connection
    met: Counter[str]


class NoteService(RuleBasedStateMachine):
    """One example, with tenants of its own."""

    surroundings: ClassVar[Surroundings]

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.parties = Parties(self.surroundings.http, self.surroundings.operator, self.model)
        self.sent: list[tuple[str, Write]] = []

    def teardown(self) -> None:
        self.parties.compare_tables()

    @initialize()
    def begin(self) -> None:
        for name in PRINCIPALS:
            arguments = {"folder": "drafts", "title": "Reef", "text": "Reef A."}
            self._write((name, None), Write("note-1", "note.create", arguments))

    # --- writes --------------------------------------------------------------------------------------

    @rule(way=ways, write=creates, quoted=st.booleans())
    def create(self, way: Way, write: Write, quoted: bool) -> None:
        self._write(way, write, quoted=quoted)

    @rule(way=ways, revision=revisions)
    def revise(self, way: Way, revision: tuple[str, int, str, str, Due]) -> None:
        self._write(way, self._revision(*revision))

    @rule(place=st.integers(0, 99), text=st.one_of(st.none(), texts), due=dues)
    def send_again(self, place: int, text: str | None, due: Due) -> None:
        """A write of before under its key: the same, or with another text."""
        name, write = self.sent[place % len(self.sent)]
        changed = {} if text is None else {"text": text}
        self._write((name, None), replace(write, arguments=write.arguments | changed, due=due))

    def _revision(self, key: str, place: int, tag: str, text: str, due: Due) -> Write:
        note_id = next(itertools.islice(self.model.notes, place, None), _NO_NOTE)
        sent = {"note_id": note_id, "title": "Reef", "text": text}
        match tag, self.model.notes.get(note_id, []):
            case "right", [*_, latest]:
                sent["if_match"] = latest.ref["etag"]
            case "old", [first, *_]:
                sent["if_match"] = first.ref["etag"]
            case "missing", _:
                pass
            case _:
                sent["if_match"] = "1-0000000000000000"
        return Write(key, "note.revise", sent, due)

    def _write(self, way: Way, write: Write, *, quoted: bool = False) -> None:
        key = f'"{write.key}"' if quoted else write.key
        headers = {"Idempotency-Key": key, "Operation-Deadline": moment(write.due.value)}
        method, path, body = "POST", "/v1/notes", write.arguments.copy()
        if write.kind == "note.revise":
            method, path = "PUT", f"/v1/notes/{body.pop('note_id')}"
            if "if_match" in body:
                headers["If-Match"] = f'"{body.pop("if_match")}"'
        answer = self.parties.ask(way, method, path, headers, json=body)
        scope = self.parties.acting(way)
        (expected,) = self._expect([(scope, write)])
        if isinstance(expected, Refused):
            check_problem_answer(answer, expected)
            return
        assert isinstance(scope, Scope)
        receipt = answer.json()
        self._check_receipt(scope, write, expected, answer.status_code, receipt, answer.content)
        assert answer.headers["operation-state"] == "completed"
        assert answer.headers["location"] == receipt["note"]["location"]
        assert answer.headers["etag"] == f'"{receipt["note"]["etag"]}"'
        assert ("idempotent-replayed" in answer.headers) == isinstance(expected, Replayed)

    def _expect(self, wanted: list[tuple[Scope | Refused, Write]]) -> list[Expected]:
        expected = self.model.writes(wanted)
        names = {self.parties.scope(name): name for name in PRINCIPALS}
        self.sent += [(names[scope], write) for scope, write in wanted if isinstance(scope, Scope)]
        self.surroundings.met.update(
            one.code if isinstance(one, Refused) else type(one).__name__.lower() for one in expected
        )
        return expected

    def _check_receipt(
        self,
        scope: Scope,
        write: Write,
        expected: Replayed | Executed,
        status: int,
        receipt: Body,
        body: bytes,
    ) -> None:
        match expected:
            case Replayed(record):
                assert (status, body) == (record.status, record.body)
            case Executed(folder, version):
                self.model.learn(scope, write, receipt, body)
                assert status == (201 if version == 1 else 200)
                assert (receipt["operation_id"], receipt["args_hash"]) == (write.key, write.args_hash)
                assert (receipt["note"]["folder"], receipt["note"]["version"]) == (folder, version)
                assert receipt["note"]["id"] == write.arguments.get("note_id", receipt["note"]["id"])
            case _:
                assert_never(expected)

    @rule(
        way=ways,
        items=st.lists(
            st.tuples(st.one_of(st.none(), principals), st.one_of(creates, revisions)), min_size=1, max_size=6
        ),
    )
    def batch(self, way: Way, items: list[tuple[str | None, Any]]) -> None:
        """Creates and revisions, good and bad ones, each under its key and for whom it names."""
        writes = [item if isinstance(item, Write) else self._revision(*item) for _, item in items]
        sent: list[Body] = []
        for write, (name, _) in zip(writes, items, strict=True):
            acting = {"on_behalf_of": str(self.parties.scope(name))} if name else {}
            moments = {"deadline": moment(write.due.value)}
            sent.append({"operation_id": write.key, "kind": write.kind, "arguments": write.arguments})
            sent[-1] |= moments | acting
        answer = self.parties.ask(way, "POST", "/v1/notes:batch", json={"items": sent})
        if way[0] == "nobody":
            check_problem_answer(answer, _UNKNOWN)
            return
        assert answer.status_code == 200
        scopes = [self.parties.acting((way[0], name or way[1])) for name, _ in items]
        wanted = list(zip(scopes, writes, strict=True))
        for (scope, write), expected, got in zip(
            wanted, self._expect(wanted), answer.json()["items"], strict=True
        ):
            assert got["operation_id"] == write.key
            if isinstance(expected, Refused):
                assert got["status"] == expected.status, f"{got}, and not {expected}"
                check_problem_body(got["problem"], expected)
                continue
            assert isinstance(scope, Scope)
            assert got["replayed"] == isinstance(expected, Replayed)
            body = json.dumps(got["receipt"], ensure_ascii=False, separators=(",", ":")).encode()
            self._check_receipt(scope, write, expected, got["status"], got["receipt"], body)

    # --- seals ---------------------------------------------------------------------------------------

    @rule(way=ways, key=keys, due=dues)
    def seal(self, way: Way, key: str, due: Due) -> None:
        headers = {"Operation-Deadline": moment(due.value)}
        answer = self.parties.ask(way, "POST", f"/v1/operations/{key}:seal", headers)
        scope = self.parties.acting(way)
        self._check_state(
            answer, key, scope if isinstance(scope, Refused) else self.model.seal(scope, key, None, due)
        )

    @rule(
        name=principals, writes=st.lists(creates, min_size=1, max_size=4, unique_by=lambda write: write.key)
    )
    def seal_many(self, name: str, writes: list[Write]) -> None:
        """With the hash of the arguments, so that others under the key are a conflict."""
        items = [
            {
                "operation_id": write.key,
                "deadline": moment(write.due.value),
                "args_hash": write.args_hash,
            }
            for write in writes
        ]
        answer = self.parties.ask((name, None), "POST", "/v1/operations:seal", json={"items": items})
        assert answer.status_code == 200
        for got, write in zip(answer.json()["items"], writes, strict=True):
            expected = self.model.seal(self.parties.scope(name), write.key, write.args_hash, write.due)
            check_state_body(got, write.key, expected)

    @rule()
    def purge(self) -> None:
        """A month later only tombstones go."""
        self.parties.age_tombstones()
        window = self.surroundings.window_seconds
        assert purging.purge_tombstones(self.parties.operator, window) == self.model.forget_tombstones()

    # --- questions -----------------------------------------------------------------------------------

    @rule(way=ways, key=keys)
    def status(self, way: Way, key: str) -> None:
        answer = self.parties.ask(way, "GET", f"/v1/operations/{key}")
        scope = self.parties.acting(way)
        self._check_state(answer, key, scope if isinstance(scope, Refused) else self._known(scope, key))

    def _known(self, scope: Scope, key: str) -> Record | None:
        return self.model.records.get((scope, key))

    def _check_state(self, answer: httpx2.Response, key: str, expected: Record | Refused | None) -> None:
        if isinstance(expected, Refused):
            check_problem_answer(answer, expected)
            return
        assert answer.status_code == 200
        check_state_body(answer.json(), key, expected)
        assert answer.headers["operation-state"] == answer.json()["state"]

    @rule(way=ways, asked=st.lists(st.tuples(keys, principals), min_size=1, max_size=4))
    def status_many(self, way: Way, asked: list[tuple[str, str]]) -> None:
        items = [{"operation_id": key, "on_behalf_of": str(self.parties.scope(name))} for key, name in asked]
        answer = self.parties.ask(way, "POST", "/v1/operations:status", json={"operations": items})
        if way[0] == "nobody":
            check_problem_answer(answer, _UNKNOWN)
            return
        for got, (key, name) in zip(answer.json()["items"], asked, strict=True):
            scope = self.parties.acting((way[0], name))
            check_state_body(got, key, scope if isinstance(scope, Refused) else self._known(scope, key))

    @rule(way=ways, place=places, version=st.one_of(st.none(), st.integers(1, 3)))
    def read(self, way: Way, place: int, version: int | None) -> None:
        note_id = next(itertools.islice(self.model.notes, place, None), _NO_NOTE)
        query = {} if version is None else {"version": str(version)}
        answer = self.parties.ask(way, "GET", f"/v1/notes/{note_id}", params=query)
        scope = self.parties.acting(way)
        expected = scope if isinstance(scope, Refused) else self.model.read(scope, note_id, version)
        if isinstance(expected, Refused):
            check_problem_answer(answer, expected)
        else:
            check_note(answer, expected)

    @rule(way=ways, key=keys)
    def notes_of_operation_and_folders(self, way: Way, key: str) -> None:
        notes = self.parties.ask(way, "GET", "/v1/notes", params={"operation": key})
        folders_ = self.parties.ask(way, "GET", "/v1/folders")
        scope = self.parties.acting(way)
        if isinstance(scope, Refused):
            check_problem_answer(notes, scope)
            check_problem_answer(folders_, scope)
            return
        record = self._known(scope, key)
        assert notes.json() == {"notes": [record.receipt["note"]] if record and record.receipt else []}
        assert [folder["path"] for folder in folders_.json()["folders"]] == self.model.permitted(scope)

    # --- the operator, and competitors ---------------------------------------------------------------

    @rule(name=principals, folder=folders, what=st.sampled_from(["grant", "grant", "revoke", "revoke_token"]))
    def administer(self, name: str, folder: str, what: str) -> None:
        match what:
            case "grant":
                self.parties.grant(name, folder)
            case "revoke":
                self.parties.revoke(name, folder)
            case _:
                self.parties.revoke_token(name)

    @rule(name=principals, write=creates)
    def while_the_key_is_held(self, name: str, write: Write) -> None:
        """Who must wait is told so, and what exists is still told; a batch never waits."""
        headers = {"Idempotency-Key": write.key, "Operation-Deadline": moment(3600)}
        way, record = (name, None), self._known(self.parties.scope(name), write.key)
        with self.surroundings.holder.transaction():
            self.parties.hold_key(self.surroundings.holder, name, write.key)
            created = self.parties.ask(way, "POST", "/v1/notes", headers, json=write.arguments)
            sealed = self.parties.ask(way, "POST", f"/v1/operations/{write.key}:seal", headers)
            asked = self.parties.ask(way, "GET", f"/v1/operations/{write.key}").json()
        check_problem_answer(created, _BUSY)
        check_problem_answer(sealed, _BUSY)
        if record is None:
            assert (asked["state"], asked["note"]) == ("in_progress", None)
        else:
            check_state_body(asked, write.key, record)

    # --- what is always true -------------------------------------------------------------------------

    @invariant()
    def nothing_else_was_recorded(self) -> None:
        states = Counter(record.state for record in self.model.records.values())
        assert self.parties.count_records() == states
