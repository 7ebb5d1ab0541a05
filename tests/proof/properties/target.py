"""A note service under fire: what is right in itself, one part of which a test replaces by something that is not."""

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from oncebox_notes.administration import Connection
from tests.notes.running import RunningService, arguments, moment
from tests.proof.properties.problem_shape import RECORDS, check_problem
from tests.proof.properties.raw_http import Answer, Header, exchange, request

CREATE: Final = b"POST /v1/notes"
REVISE: Final = b"PUT /v1/notes/NOTE"
BATCH: Final = b"POST /v1/notes:batch"
STATUS_MANY: Final = b"POST /v1/operations:status"
SEAL_MANY: Final = b"POST /v1/operations:seal"
SEAL: Final = b"POST /v1/operations/note-7:seal"
STATUS: Final = b"GET /v1/operations/note-7"
LOOK_UP: Final = b"GET /v1/notes?operation=note-7"
READ: Final = b"GET /v1/notes/NOTE"
FOLDERS: Final = b"GET /v1/folders"
CAPABILITIES: Final = b"GET /v1/capabilities"

WRITING: Final = (CREATE, REVISE)
LISTING: Final = (BATCH, STATUS_MANY, SEAL_MANY)
ASKING: Final = (SEAL, STATUS, LOOK_UP, READ, FOLDERS)
AUTHENTICATED: Final = (*WRITING, *LISTING, *ASKING, CAPABILITIES)

_UNPARSED: Final = b"Invalid HTTP request received."


@dataclass(slots=True)
class Target:
    """The service with one note, whose requests are those of demo/researcher or of a delegate that acts for it."""

    url: str
    token: bytes
    delegate: bytes
    note_id: str
    etag: str
    watching: Connection
    _recorded: list[tuple[Any, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self._recorded = self._count()

    def _count(self) -> list[tuple[Any, ...]]:
        return self.watching.execute(RECORDS).fetchall()

    # --- right requests ------------------------------------------------------------------------------

    def target(self, endpoint: bytes) -> tuple[bytes, bytes]:
        """Method and path."""
        method, _, path = endpoint.partition(b" ")
        return method, path.replace(b"NOTE", self.note_id.encode())

    def headers(self, endpoint: bytes, body: bytes = b"") -> dict[bytes, bytes]:
        """All that the endpoint wants, for a body that is sent as JSON."""
        headers = {b"Authorization": b"Bearer " + self.token}
        if endpoint in (*WRITING, SEAL):
            headers[b"Operation-Deadline"] = moment(3600).encode()
        if endpoint in WRITING:
            headers[b"Idempotency-Key"] = b"note-7"
        if endpoint == REVISE:
            headers[b"If-Match"] = b'"%s"' % self.etag.encode()
        if endpoint in (*WRITING, *LISTING):
            headers |= {b"Content-Type": b"application/json", b"Content-Length": b"%d" % len(body)}
        return headers

    def item(self, endpoint: bytes, key: str = "note-7") -> dict[str, Any]:
        """What a body of this endpoint consists of: itself, or one item of its list."""
        due = {"operation_id": key, "deadline": moment(3600)}
        match endpoint:
            case b"POST /v1/notes":
                return dict(arguments())
            case b"PUT /v1/notes/NOTE":
                return {"title": "Finding 7", "text": "Changed."}
            case b"POST /v1/notes:batch":
                return due | {"kind": "note.create", "arguments": arguments()}
            case b"POST /v1/operations:seal":
                return due
            case _:
                return {"operation_id": key}

    def body(self, endpoint: bytes) -> bytes:
        """A right body, empty for an endpoint that takes none."""
        if endpoint in WRITING:
            return json.dumps(self.item(endpoint)).encode()
        return enlist(endpoint, [json.dumps(self.item(endpoint)).encode()]) if endpoint in LISTING else b""

    def build(
        self,
        endpoint: bytes,
        *,
        body: bytes | None = None,
        headers: Sequence[Header] = (),
        without: bytes = b"",
    ) -> bytes:
        """A request; `headers` replace those of their names, and may repeat one."""
        content = self.body(endpoint) if body is None else body
        kept = self.headers(endpoint, content)
        for name in (without, *(name for name, _ in headers)):
            kept.pop(name, None)
        method, path = self.target(endpoint)
        return request(method, path, [*kept.items(), *headers], content)

    # --- what becomes of a wrong one -----------------------------------------------------------------

    def send(self, sent: bytes) -> Answer:
        """The answer to what must not record anything."""
        answer = exchange(self.url, sent)
        recorded = self._count()
        assert recorded == self._recorded, f"{sent[:2000]!r} left something behind: {answer}"
        return answer

    def refuse(self, sent: bytes, *codes: str, unparsed: bool = False) -> dict[str, Any]:
        """The problem that the request meets: one of `codes`, or the refusal of the HTTP parser where it may be."""
        answer = self.send(sent)
        if unparsed and is_unparsed(answer):
            return {}
        problem = check_problem(answer.status, answer.headers, answer.body)
        assert problem["code"] in codes, f"{sent[:2000]!r} met {problem}"
        return problem

    def forget_what_was_recorded(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """After a request that was meant to record something: the counts before it and now."""
        before, self._recorded = self._recorded, self._count()
        return before[0], self._recorded[0]


def enlist(endpoint: bytes, items: Sequence[bytes]) -> bytes:
    """The body of an endpoint for many."""
    name = b"operations" if endpoint == STATUS_MANY else b"items"
    return b'{"%s":[%s]}' % (name, b",".join(items))


def is_unparsed(answer: Answer) -> bool:
    """Refused by the HTTP parser, before it was a request."""
    return (answer.status, answer.body) == (400, _UNPARSED)


@contextmanager
def target_of(service: RunningService) -> Generator[Target, None, None]:
    """The service with a principal, a grant, a note and a delegate."""
    researcher = service.principal()
    made = researcher.create("note-1").json()["note"]
    token = service.token()
    delegate = service.token("worker", tenants=["demo"])
    with service.connect() as watching:
        yield Target(service.url, token.encode(), delegate.encode(), made["id"], made["etag"], watching)
