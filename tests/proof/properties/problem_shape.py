"""What every refusal looks like: a problem of the documented shape, and nothing recorded by it."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import jsonschema

from oncebox_notes.openapi import PROBLEM
from tests.notes.running import RunningService

RECORDS: Final = "SELECT (SELECT count(*) FROM operation_record), (SELECT count(*) FROM note), (SELECT count(*) FROM note_version)"
_SHAPE: Final = jsonschema.Draft202012Validator(PROBLEM)


def check_shape(problem: dict[str, Any], status: int) -> None:
    """A problem of a request of which nothing was executed, in an answer or in an item of one."""
    _SHAPE.validate(problem)
    assert (problem["status"], problem["attempt"]) == (status, "not_executed"), problem
    assert problem["type"] == f"urn:oncebox:problem:{problem['code']}", problem


def check_problem(status: int, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """The problem in an answer; fails when it is none, or not one of a request that was refused."""
    said = f"{status} {body[:500]!r}"
    assert 400 <= status < 500, said
    assert headers["content-type"] == "application/problem+json", said
    problem: dict[str, Any] = json.loads(body)
    check_shape(problem, status)
    assert headers["operation-state"] == problem["operation_state"], said
    return problem


@contextmanager
def nothing_recorded(service: RunningService) -> Generator[None, None, None]:
    """No record, no note and no version is made in the block."""
    before = service.rows(RECORDS)
    yield
    assert service.rows(RECORDS) == before
