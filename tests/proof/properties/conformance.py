"""Schemathesis against a running note service, driven by the service's own OpenAPI document."""

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import schemathesis
from hypothesis import strategies as st
from schemathesis.engine import events, from_schema
from schemathesis.engine.recorder import ScenarioRecorder

from tests.proof.properties.budget import SEED, TIMES

MANY: Final = ("/v1/notes:batch", "/v1/operations:seal", "/v1/operations:status")
_METHODS: Final = ("get", "put", "post")
_ACCEPTED: Final = ["2xx"]
# Valid by the document, and still refused for what only the service knows: permission, other arguments under the
# key, a passed deadline, another version. Nothing else may refuse what the document allows.
_KNOWN_TO_THE_SERVICE_ALONE: Final = ["401", "403", "404", "409", "410", "412", "422"]
_REFUSED: Final = ["400", "401", "403", "404", "405", "412", "413", "415", "422", "428"]


def documented(document: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """(METHOD, path, status) for everything that the document lists."""
    for path, operations in document["paths"].items():
        for method in _METHODS:
            for status in operations.get(method, {}).get("responses", ()):
                yield method.upper(), path, int(status)


def for_a_principal(document: dict[str, Any]) -> dict[str, Any]:
    """The document as an agent reads it: its token says for whom it acts."""
    copied = copy.deepcopy(document)
    for operations in copied["paths"].values():
        for operation in operations.values():
            parameters = operation.get("parameters", [])
            operation["parameters"] = [part for part in parameters if part["name"] != "On-Behalf-Of"]
    return copied


def register_formats() -> None:
    """What the document can only name: a deadline that lies in the admission window, a plain folder."""
    began = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)

    def deadline(hours: int) -> str:
        return (began + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")

    schemathesis.openapi.format("date-time", st.integers(-24, 6 * 24).map(deadline))
    schemathesis.openapi.format("folder", st.sampled_from(["drafts", "published", "drafts/2030", "d%20r"]))


def load(document: dict[str, Any], url: str, headers: dict[str, str], examples: int) -> Any:
    """The document with all checks on."""
    given: dict[str, Any] = {
        "base-url": url,
        "headers": headers,
        "continue-on-failure": True,
        "generation": {
            "max-examples": examples * TIMES,
            "database": "none",
            "deterministic": SEED is not None,
        },
        "checks": {
            "positive_data_acceptance": {"expected-statuses": [*_ACCEPTED, *_KNOWN_TO_THE_SERVICE_ALONE]},
            "negative_data_rejection": {"expected-statuses": _REFUSED},
            "missing_required_header": {"expected-statuses": ["400", "401", "428"]},
        },
        "operations": [
            {
                # Each item has its own status: the answer to the whole is 200 once it could be read.
                "include-path": [*MANY],
                "checks": {"negative_data_rejection": {"expected-statuses": [*_ACCEPTED, *_REFUSED]}},
            },
            {
                # A key may end in ":seal", so this path also is the status of such a key: GET is right.
                "include-path": ["/v1/operations/{key}:seal"],
                "checks": {"allow_header_conformance": {"enabled": False}},
            },
        ],
    }
    if SEED is not None:
        given["seed"] = SEED
    return schemathesis.openapi.from_dict(document, config=schemathesis.Config.from_dict(given))


def run(schema: Any) -> Iterator[str]:
    """All phases: the edges of every parameter, random values, sequences of operations; a line for each failed check."""
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            for failure in _failures(event.recorder):
                yield f"seed {schema.config.seed}, {failure}"
        elif isinstance(event, events.NonFatalError):
            yield f"{event.label}: {event.value!r}"
        elif isinstance(event, events.FatalError):
            raise event.exception


def _failures(recorder: ScenarioRecorder) -> Iterator[str]:
    for case_id, checks in recorder.checks.items():
        label = recorder.cases[case_id].value.operation.label
        for check in checks:
            if check.failure_info is not None:
                yield f"{label} {check.name}: {check.failure_info.failure}\n{check.failure_info.code_sample}"
