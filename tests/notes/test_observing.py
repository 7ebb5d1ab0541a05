"""What can be seen from outside: the access log, metrics, health, the OpenAPI document."""

import jsonschema

from oncebox_notes.problems import KINDS
from tests.notes import wire_examples
from tests.notes.running import RunningService, Sender, arguments, item, moment
from tests.support.polling import eventually


def test_each_request_is_one_line_without_token_and_text(
    service: RunningService, researcher: Sender, worker: Sender
) -> None:
    key = "note-7-with-a-long-name"
    researcher.create(key, headers={"Call-Id": "call-1"})
    items = [item(f"note-{number}", acting="demo/researcher") for number in range(3)]
    worker.batch(*items)
    worker.batch(*[item(f"n-{number}", acting="demo/researcher") for number in range(21)])
    researcher.status(key)
    researcher.http.get("/nowhere")
    lines = eventually(lambda: len(service.log()) == 5 and service.log(), what="five lines")
    assert isinstance(lines, list)
    assert [(line["method"], line["route"], line["status"], line["operations"]) for line in lines] == [
        ("POST", "/v1/notes", 201, 1),
        ("POST", "/v1/notes:batch", 200, 3),
        ("POST", "/v1/notes:batch", 200, 21),
        ("GET", "/v1/operations/{key}", 200, 1),
        ("GET", "unknown", 404, None),
    ]
    assert (lines[0]["keys"], lines[0]["call_id"]) == (["note-7-w"], "call-1")
    assert (lines[0]["principal"], lines[1]["principal"]) == ("demo/researcher", None)
    assert lines[1]["keys"] == ["note-0", "note-1", "note-2"]
    assert lines[2]["keys"] == []
    text = service.access_log.read_text(encoding="utf-8")
    for secret in ("Bearer", "oncebox_", "Reef B", key):
        assert secret not in text


def test_the_metrics_count_requests_and_outcomes(service: RunningService, researcher: Sender) -> None:
    researcher.create("note-7")
    researcher.create("note-7")
    researcher.create("note-7", text="Changed.")
    researcher.http.post(
        "/v1/notes",
        json=arguments() | {"authorized": True},
        headers={"Idempotency-Key": "a", "Operation-Deadline": moment(60)},
    )
    text = researcher.http.get("/metrics").text
    assert 'notes_requests_total{method="POST",route="/v1/notes",status="201"} 2.0' in text
    assert 'notes_request_duration_seconds_count{method="POST",route="/v1/notes"} 4.0' in text
    for outcome in ("executed", "replayed", "argument_conflict", "invalid_argument"):
        assert f'notes_idempotency_total{{outcome="{outcome}"}} 1.0' in text


def test_health_is_the_process_and_readiness_the_database(service: RunningService) -> None:
    stranger = service.sender(None)
    assert stranger.http.get("/healthz").json() == {"status": "alive"}
    assert stranger.http.get("/readyz").json() == {"status": "ready"}
    service.execute("UPDATE alembic_version SET version_num = '0000'")
    assert stranger.http.get("/readyz").json()["code"] == "busy"
    assert stranger.http.get("/healthz").status_code == 200


def test_folders_are_those_with_a_grant_in_force(service: RunningService, worker: Sender) -> None:
    service.grant("published")
    service.grant("archive")
    service.revoke("archive")
    service.grant("secret", "writer")
    headers = {"On-Behalf-Of": "demo/researcher"}
    found = worker.http.get("/v1/folders", headers=headers).json()["folders"]
    assert [folder["path"] for folder in found] == ["drafts", "published"]


def test_the_receiver_keeps_its_identity(service: RunningService, researcher: Sender) -> None:
    first, second = (researcher.http.get("/v1/capabilities").json()["receiver"] for _ in range(2))
    assert first == second == str(service.rows("SELECT id FROM receiver")[0][0])


def test_openapi_lists_every_endpoint_and_status(service: RunningService) -> None:
    """Each example's route, status and problem code is in the document, and its body fits the schema."""
    document = service.sender(None).http.get("/openapi.json").json()
    endpoints = {
        f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods
    }
    assert endpoints == {
        "GET /v1/capabilities",
        "POST /v1/notes",
        "GET /v1/notes",
        "POST /v1/notes:batch",
        "GET /v1/notes/{note_id}",
        "PUT /v1/notes/{note_id}",
        "GET /v1/operations/{key}",
        "POST /v1/operations/{key}:seal",
        "POST /v1/operations:status",
        "POST /v1/operations:seal",
        "GET /v1/folders",
        "GET /healthz",
        "GET /readyz",
        "GET /metrics",
        "GET /openapi.json",
    }
    for name in wire_examples.names():
        example = wire_examples.load(name)
        response = example["response"]
        if response["body"].get("code") in {"route_not_found", "method_not_allowed"}:
            continue
        method = example["request"]["method"].lower()
        path = template(example["request"]["path"].partition("?")[0])
        described = document["paths"][path][method]["responses"][str(response["status"])]
        media = response["headers"]["content-type"]
        jsonschema.validate(response["body"], described["content"][media]["schema"])
        if "code" in response["body"]:
            assert response["body"]["code"] in described["description"]
            assert KINDS[response["body"]["code"]].status == response["status"]


def template(path: str) -> str:
    """The route of an example's path."""
    head, _, tail = path.removeprefix("/v1/").partition("/")
    if not tail:
        return path
    if head == "notes":
        return "/v1/notes/{note_id}"
    return "/v1/operations/{key}" + (":seal" if tail.endswith(":seal") else "")


def test_everything_that_is_refused_is_a_problem_document(researcher: Sender) -> None:
    for method, path in (
        ("GET", "/"),
        ("GET", "/v1/notes/"),
        ("PATCH", "/v1/notes"),
        ("POST", "/v1/operations/a"),
        ("GET", "/v1/operations/a/b"),
        ("GET", "/docs"),
    ):
        reply = researcher.http.request(method, path)
        assert reply.status_code in {404, 405}, (method, path)
        assert reply.headers["content-type"] == "application/problem+json"
        assert reply.json()["attempt"] == "not_executed"
    assert researcher.http.request("PATCH", "/v1/notes").headers["allow"] == "GET, POST"
