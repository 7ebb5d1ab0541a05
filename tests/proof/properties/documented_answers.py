"""One request for each status of each operation, under the real conditions that bring it about.

Random input reaches neither a sealed key nor a stopped database; these do, and the checks of schemathesis judge the
answers: the status is documented, the content type and the body are those of the document.
"""

import itertools
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from schemathesis.specs.openapi import checks

from tests.notes.running import RunningService, arguments, item, moment
from tests.proof.properties.problem_shape import check_problem

Request = dict[str, Any]

_CONFORMANCE: Final = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
WITHOUT_TOKEN: Final = ("GET /healthz", "GET /readyz", "GET /metrics", "GET /openapi.json")
WITH_BODY: Final = (
    "POST /v1/notes",
    "PUT /v1/notes/{note_id}",
    "POST /v1/notes:batch",
    "POST /v1/operations:status",
    "POST /v1/operations:seal",
)
LIMITED: Final = (
    "POST /v1/notes",
    "PUT /v1/notes/{note_id}",
    "POST /v1/notes:batch",
    "POST /v1/operations/{key}:seal",
    "POST /v1/operations:seal",
)


@dataclass(slots=True)
class Asking:
    """Sends single requests through the operations of a loaded document, with the token of demo/researcher."""

    schema: Any
    url: str
    token: str
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def key(self) -> str:
        return f"directed-{next(self._numbers)}"

    def ask(self, label: str, expected: int, request: Request, *, token: str | None = None) -> Any:
        """The answer, which has the expected status and is what the document says of it."""
        method, path = label.split()
        sent = {"Authorization": f"Bearer {token or self.token}"} | request.get("headers", {})
        case = self.schema[path][method].Case(
            headers=sent, **{name: value for name, value in request.items() if name != "headers"}
        )
        answer = case.call(base_url=self.url)
        assert answer.status_code == expected, f"{label}: {answer.status_code} {answer.text[:500]}"
        case.validate_response(answer, checks=_CONFORMANCE)
        return answer

    def ask_acting_for_two(self, label: str) -> None:
        """A 400 of every operation: a header that may occur once occurs twice, which schemathesis cannot send."""
        method, path = label.split()
        request = self.sample(label)
        named = ("On-Behalf-Of", "demo/researcher")
        headers = {"Authorization": f"Bearer {self.token}"} | request.get("headers", {})
        answer = httpx2.request(
            method,
            self.url + path.format(**request.get("path_parameters", {})),
            headers=[*headers.items(), named, named],
            params=request.get("query"),
            json=request.get("body"),
        )
        assert answer.status_code == 400, f"{label}: {answer.status_code} {answer.text[:500]}"
        check_problem(answer.status_code, answer.headers, answer.content)

    def sample(self, label: str) -> Request:
        """A request that is right in itself, under a new key; the note that is revised does not exist."""
        key, deadline = self.key(), moment(3600)
        writing = {"Idempotency-Key": key, "Operation-Deadline": deadline}
        match label:
            case "POST /v1/notes":
                return {"headers": writing, "body": arguments()}
            case "PUT /v1/notes/{note_id}":
                return revision("00000000-0000-7000-8000-000000000000", "1-0", key)
            case "GET /v1/notes/{note_id}":
                return {"path_parameters": {"note_id": "00000000-0000-7000-8000-000000000000"}}
            case "POST /v1/notes:batch":
                return {"body": {"items": [item(key)]}}
            case "GET /v1/notes":
                return {"query": {"operation": key}}
            case "GET /v1/operations/{key}":
                return {"path_parameters": {"key": key}}
            case "POST /v1/operations/{key}:seal":
                return {"path_parameters": {"key": key}, "headers": {"Operation-Deadline": deadline}}
            case "POST /v1/operations:status":
                return {"body": {"operations": [{"operation_id": key}]}}
            case "POST /v1/operations:seal":
                return {"body": {"items": [{"operation_id": key, "deadline": deadline}]}}
            case _:
                return {}


def revision(note_id: str, tag: str, key: str, **changes: str) -> Request:
    headers = {"Idempotency-Key": key, "Operation-Deadline": moment(3600), "If-Match": f'"{tag}"'}
    body = {"title": "Finding 7", "text": "Changed."} | changes
    return {"path_parameters": {"note_id": note_id}, "headers": headers, "body": body}


def with_headers(request: Request, **headers: str) -> Request:
    """The request with these headers; an underscore stands for a hyphen."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return request | {"headers": request.get("headers", {}) | named}


def answers_of_a_healthy_service(asking: Asking, service: RunningService, labels: Sequence[str]) -> None:
    """What depends on the request, on the records and on the grants."""
    for label in labels:
        if label not in WITHOUT_TOKEN:
            asking.ask(label, 401, asking.sample(label), token="oncebox_unknown")
            asking.ask_acting_for_two(label)
    for label in WITH_BODY:
        asking.ask(label, 415, with_headers(asking.sample(label), Content_Type="text/plain"))
    for label in ("POST /v1/notes", "PUT /v1/notes/{note_id}"):
        long = asking.sample(label)
        asking.ask(label, 413, long | {"body": long["body"] | {"text": "x" * 262_145}})
    for label in ("POST /v1/notes:batch", "POST /v1/operations:status", "POST /v1/operations:seal"):
        ((name, items),) = asking.sample(label)["body"].items()
        asking.ask(label, 200, {"body": {name: items}})
        asking.ask(label, 413, {"body": {name: items * 501}})
    for label in ("GET /v1/capabilities", "GET /v1/folders", "GET /v1/operations/{key}", "GET /v1/notes"):
        asking.ask(label, 200, asking.sample(label))
    for label in WITHOUT_TOKEN:
        asking.ask(label, 200, {})
    _answers_of_a_key(asking, service)
    _answers_of_a_note(asking)


def _answers_of_a_key(asking: Asking, service: RunningService) -> None:
    create, seal = "POST /v1/notes", "POST /v1/operations/{key}:seal"
    made = asking.sample(create)
    asking.ask(create, 201, made)
    asking.ask(create, 201, made)
    asking.ask(create, 422, made | {"body": arguments(text="Changed.")})
    asking.ask(create, 403, asking.sample(create) | {"body": arguments(folder="archive")})
    asking.ask(create, 410, with_headers(asking.sample(create), Operation_Deadline=moment(-60)))
    sealed = asking.sample(create)
    asking.ask(
        seal,
        200,
        {
            "path_parameters": {"key": sealed["headers"]["Idempotency-Key"]},
            "headers": {"Operation-Deadline": moment(60)},
        },
    )
    asking.ask(create, 409, sealed)
    busy = asking.sample(seal)
    with service.held_key(busy["path_parameters"]["key"]):
        asking.ask(seal, 409, busy)
        asking.ask(
            create, 409, with_headers(asking.sample(create), Idempotency_Key=busy["path_parameters"]["key"])
        )


def _answers_of_a_note(asking: Asking) -> None:
    revise, read = "PUT /v1/notes/{note_id}", "GET /v1/notes/{note_id}"
    note = asking.ask("POST /v1/notes", 201, asking.sample("POST /v1/notes")).json()["note"]
    asking.ask(read, 200, {"path_parameters": {"note_id": note["id"]}})
    asking.ask(read, 404, asking.sample(read))
    asking.ask(revise, 404, asking.sample(revise))
    key = asking.key()
    asking.ask(revise, 412, revision(note["id"], "1-0", key))
    asking.ask(revise, 200, revision(note["id"], note["etag"], key))
    asking.ask(revise, 422, revision(note["id"], note["etag"], key, text="Changed again."))
    asking.ask(
        "POST /v1/operations:seal",
        200,
        {"body": {"items": [{"operation_id": "directed-sealed", "deadline": moment(60)}]}},
    )
    asking.ask(revise, 409, revision(note["id"], note["etag"], "directed-sealed"))
    tag = asking.ask(read, 200, {"path_parameters": {"note_id": note["id"]}}).json()["etag"]
    late = with_headers(revision(note["id"], tag, asking.key()), Operation_Deadline=moment(-60))
    asking.ask(revise, 410, late)
    blind = revision(note["id"], tag, asking.key())
    del blind["headers"]["If-Match"]
    asking.ask(revise, 428, blind)


def answers_of_a_used_up_rate(asking: Asking) -> None:
    """At a service that lets a token do one operation in a very long time."""
    asking.ask("POST /v1/notes", 201, asking.sample("POST /v1/notes"))
    for label in LIMITED:
        asking.ask(label, 429, asking.sample(label))


def answers_of_a_failing_service(asking: Asking, service: RunningService, labels: Sequence[str]) -> None:
    """A table is missing: the fault is the service's own, and nobody can say what was executed."""
    service.execute("ALTER TABLE token RENAME TO token_gone")
    try:
        for label in labels:
            if label not in WITHOUT_TOKEN:
                asking.ask(label, 500, asking.sample(label))
    finally:
        service.execute("ALTER TABLE token_gone RENAME TO token")


def answers_without_a_database(asking: Asking, service: RunningService, labels: Sequence[str]) -> None:
    """The database cannot be reached, and nothing was executed for certain."""
    with unreachable(service.database_url):
        for label in labels:
            if label == "GET /readyz" or label not in WITHOUT_TOKEN:
                asking.ask(label, 503, asking.sample(label))


@contextmanager
def unreachable(database_url: str) -> Generator[None, None, None]:
    """Nobody gets into this database, and whoever was in it is put out."""
    database = conninfo_to_dict(database_url)["dbname"]
    name = sql.Identifier(str(database))
    with psycopg.connect(database_url, dbname="postgres", autocommit=True) as operator:
        operator.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
        try:
            operator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [database]
            )
            yield
        finally:
            operator.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))
