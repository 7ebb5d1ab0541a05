"""The note service answers as its OpenAPI document says, whatever it is sent and whatever state it is in."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.notes.running import RunningService
from tests.proof.properties import conformance, documented_answers
from tests.proof.properties.conformance import documented, for_a_principal
from tests.proof.properties.documented_answers import Asking
from tests.proof.properties.serving import serving
from tests.support.processes import Processes

EXAMPLES = 34
FEWEST_CASES = 2_000
"""Past authentication, for both tokens together."""

Seen = set[tuple[str, str, int]]


@dataclass(frozen=True, slots=True)
class Campaign:
    """What was sent and answered: the access logs of the services say it, in no words of schemathesis."""

    document: dict[str, Any]
    failures: list[str]
    random: list[dict[str, Any]]
    """The lines of the access log of all random cases."""
    directed: Seen

    @property
    def past_authentication(self) -> int:
        return sum(line["token_id"] is not None for line in self.random)


def answered(lines: list[dict[str, Any]]) -> Seen:
    return {(line["method"], line["route"], line["status"]) for line in lines}


def whole_log(service: RunningService) -> list[dict[str, Any]]:
    """With the line of the last request, which is written after its answer: a later request comes after it."""
    service.sender(None).http.get("/healthz")
    return service.log()


def campaign(service: RunningService, processes: Processes, folder: Path) -> Campaign:
    """Random cases with the token of an agent and of a delegate, then a directed one for each documented status."""
    for path in ("drafts", "published"):
        service.grant(path)
    token, delegate = service.token(), service.token("worker", tenants=["demo"])
    document = service.sender(None).http.get("/openapi.json").json()
    conformance.register_formats()
    acting = {"Authorization": f"Bearer {delegate}", "On-Behalf-Of": "demo/researcher"}
    runs = {
        "agent": (for_a_principal(document), {"Authorization": f"Bearer {token}"}),
        "delegate": (document, acting),
    }
    failures: list[str] = []
    for name, (read, headers) in runs.items():
        schema = conformance.load(read, service.url, headers, EXAMPLES)
        failures += [f"{name}: {failure}" for failure in conformance.run(schema)]
    random = whole_log(service)

    schema = conformance.load(document, service.url, {}, 1)
    labels = sorted({f"{method} {path}" for method, path, _ in documented(document)})
    asking = Asking(schema, service.url, token)
    documented_answers.answers_of_a_healthy_service(asking, service, labels)
    slow = {"rate_limit_per_token": 0.001, "batch_max_items": 1}
    with serving(service.database_url, processes, folder, **slow) as limited:
        documented_answers.answers_of_a_used_up_rate(Asking(schema, limited.url, token))
    documented_answers.answers_of_a_failing_service(asking, service, labels)
    quick = {"request_limit_seconds": 2.4, "lock_timeout_seconds": 0.3}
    with serving(service.database_url, processes, folder, **quick) as cut_off:
        documented_answers.answers_without_a_database(Asking(schema, cut_off.url, token), cut_off, labels)
    directed = [*whole_log(service)[len(random) :], *limited.log(), *cut_off.log()]
    return Campaign(document, failures, random, answered(directed))


def test_the_service_answers_as_its_document_says(
    service: RunningService, processes: Processes, tmp_path: Path
) -> None:
    """In at least 2,000 cases past authentication: every operation, every documented status, and nothing else.

    One test, since all of it is about the same answers, which take a while.
    """
    found = campaign(service, processes, tmp_path)
    # No 5xx, no undocumented status, no body off its schema; what is allowed is taken, what is not is refused.
    assert found.failures == [], "\n\n".join(found.failures)
    assert found.past_authentication >= FEWEST_CASES
    listed = set(documented(found.document))
    operations = {(method, path) for method, path, _ in listed}
    assert operations - {(method, path) for method, path, _ in answered(found.random)} == set()
    seen = {one for one in answered(found.random) | found.directed if one[:2] in operations}
    assert listed - seen == set(), "documented, and nothing brought it about"
    assert seen - listed == set(), "answered, and not documented"
