"""The service's answers held against what the model expects of them."""

from typing import Any

import httpx2

from tests.proof.properties.note_model import Record, Refused, Version
from tests.proof.properties.problem_shape import check_problem, check_shape


def check_problem_answer(answer: httpx2.Response, expected: Refused) -> None:
    said = f"{answer.status_code} {answer.text}, and not {expected}"
    assert answer.status_code == expected.status, said
    check_problem_body(check_problem(answer.status_code, answer.headers, answer.content), expected)


def check_problem_body(problem: dict[str, Any], expected: Refused) -> None:
    check_shape(problem, expected.status)
    assert (problem["code"], problem["operation_state"]) == (expected.code, expected.state), problem
    permitted = None if expected.permitted is None else [*expected.permitted]
    assert problem.get("permitted_folders") == permitted, problem


def check_state_body(body: dict[str, Any], key: str, expected: Record | Refused | None) -> None:
    """The state of a key: of its record, not found without one, or an item that says why it was refused."""
    assert body["operation_id"] == key, body
    if isinstance(expected, Refused):
        assert body["status"] == expected.status, body
        check_problem_body(body["problem"], expected)
        return
    state, args_hash, note = "not_found", None, None
    if expected is not None:
        state, args_hash = expected.state, expected.args_hash
        note = expected.receipt["note"] if expected.receipt else None
    assert (body["state"], body["args_hash"], body["note"]) == (state, args_hash, note), body


def check_note(answer: httpx2.Response, expected: Version) -> None:
    """A version as it is read: what the receipt said, and the text."""
    body, ref = answer.json(), expected.ref
    assert {name: body[name] for name in ref} == ref
    written = (body["title"], body["text"], body["operation_id"], body["principal"])
    assert written == (expected.title, expected.text, expected.key, expected.scope.principal)
    assert answer.headers["etag"] == f'"{ref["etag"]}"'
    assert answer.headers["content-location"] == f"{ref['location']}?version={ref['version']}"
