"""The table of outcomes, without a network: every row, and every near miss of a definite answer."""

import json
from collections.abc import Mapping

import pytest

from oncebox_destinations import outcomes_of_http as table
from oncebox_destinations.exchange import Reply
from oncebox_destinations.reasons import Reason
from oncebox_destinations.transport_failures import Failure
from oncebox_models.outcomes import SEND_ALONE, Outcome, Receipt
from oncebox_models.states import CallKind
from tests.unit.destinations.samples import created, operation, problem, receipt, turned_away

SEND, STATUS, SEAL = CallKind.SEND, CallKind.STATUS, CallKind.SEAL

# Independent of the code under test: DESIGN's row for each code of the wire.
CODES = {
    ("idempotency_key_missing", 400): Outcome.REFUSED,
    ("idempotency_key_invalid", 400): Outcome.REFUSED,
    ("deadline_missing", 400): Outcome.REFUSED,
    ("deadline_invalid", 400): Outcome.REFUSED,
    ("invalid_argument", 400): Outcome.REFUSED,
    ("unauthenticated", 401): Outcome.UNAUTHENTICATED,
    ("folder_not_writable", 403): Outcome.REFUSED,
    ("note_not_found", 404): Outcome.REFUSED,
    ("operation_in_progress", 409): Outcome.IN_PROGRESS,
    ("operation_sealed", 409): Outcome.SEALED,
    ("operation_expired", 410): Outcome.GONE,
    ("precondition_failed", 412): Outcome.REFUSED,
    ("too_large", 413): Outcome.REFUSED,
    ("unsupported_type", 415): Outcome.REFUSED,
    ("argument_conflict", 422): Outcome.CONFLICT,
    ("precondition_required", 428): Outcome.REFUSED,
    ("rate_limited", 429): Outcome.NOT_EXECUTED,
    ("busy", 503): Outcome.NOT_EXECUTED,
}
ABOUT_THE_REQUEST = {Outcome.REFUSED, Outcome.UNAUTHENTICATED, Outcome.NOT_EXECUTED, Outcome.GONE}


def whole(
    status: int, body: object, kind: CallKind = SEND, operations: int = 1, after_s: float | None = None
):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return table.of_whole_request(kind, Reply(status, {}, content), operations=operations, after_s=after_s)


@pytest.mark.parametrize(("coded", "expected"), CODES.items())
def test_a_known_code_with_its_status_has_its_row_of_the_table(
    coded: tuple[str, int], expected: Outcome
) -> None:
    code, status = coded
    ours = operation()
    answer = table.of_item(SEND, ours, turned_away(ours, status, problem(status, code)))
    assert (answer.outcome, answer.reason, answer.http_status) == (expected, code, status)
    assert answer.problem is not None
    assert answer.problem["detail"] == "what to do next"


@pytest.mark.parametrize(("code", "status"), CODES)
def test_a_known_code_under_another_status_is_unknown(code: str, status: int) -> None:
    ours = operation()
    other = 418
    answer = table.of_item(SEND, ours, turned_away(ours, other, problem(other, code)))
    assert answer.outcome is Outcome.UNKNOWN
    # The problem says one status and the item another: neither is believed.
    answer = table.of_item(SEND, ours, turned_away(ours, status, problem(other, code)))
    assert (answer.outcome, answer.reason) == (Outcome.UNKNOWN, f"http_{status}")


@pytest.mark.parametrize("attempt", ["unknown", "executed", "replayed", None])
@pytest.mark.parametrize(
    ("code", "status"), [coded for coded, outcome in CODES.items() if outcome in ABOUT_THE_REQUEST]
)
def test_a_verdict_on_the_request_needs_attempt_not_executed(
    code: str, status: int, attempt: str | None
) -> None:
    ours = operation()
    body = problem(status, code) | {"attempt": attempt}
    answer = table.of_item(SEND, ours, turned_away(ours, status, body))
    assert (answer.outcome, answer.reason) == (Outcome.UNKNOWN, code)


@pytest.mark.parametrize("status", [400, 402, 403, 404, 405, 409, 410, 422, 429, 500, 502, 503, 504, 599])
def test_an_unknown_code_is_unknown_whatever_it_claims(status: int) -> None:
    ours = operation()
    answer = table.of_item(SEND, ours, turned_away(ours, status, problem(status, "brand_new")))
    assert (answer.outcome, answer.reason) == (Outcome.UNKNOWN, "brand_new")


@pytest.mark.parametrize("code", [None, 7, "", "Has Spaces", "x" * 65, "a\x00b", ["busy"]])
def test_a_code_that_is_no_word_becomes_the_status(code: object) -> None:
    ours = operation()
    answer = table.of_item(SEND, ours, turned_away(ours, 503, problem(503, "busy") | {"code": code}))
    assert (answer.outcome, answer.reason) == (Outcome.UNKNOWN, "http_503")


@pytest.mark.parametrize("kind", [STATUS, SEAL])
@pytest.mark.parametrize(("coded", "expected"), CODES.items())
def test_a_refused_question_says_nothing_of_the_operation(
    kind: CallKind, coded: tuple[str, int], expected: Outcome
) -> None:
    code, status = coded
    ours = operation()
    answer = table.of_item(kind, ours, turned_away(ours, status, problem(status, code)))
    says_nothing = expected in (Outcome.REFUSED, Outcome.GONE)
    assert answer.outcome is (Outcome.UNKNOWN if says_nothing else expected)


@pytest.mark.parametrize(("status", "replayed", "reason"), [(201, False, "created"), (200, True, "replayed")])
def test_a_receipt_with_our_key_and_hash_is_proof(status: int, replayed: bool, reason: str) -> None:
    ours = operation()
    answer = table.of_item(SEND, ours, created(ours, status=status, replayed=replayed))
    assert (answer.outcome, answer.reason) == (Outcome.RECEIPT, reason)
    assert answer.receipt is not None
    assert Receipt.parse(answer.receipt.text) == answer.receipt


def test_create_replay_and_status_give_equal_receipts_byte_for_byte() -> None:
    ours = operation()
    reordered = {
        "operation_id": ours.operation_id,
        "state": "completed",
        "as_of": "2026-01-01T00:00:01Z",
        "args_hash": ours.args_hash,
        "note": dict(reversed(list(as_object(receipt(ours)["note"]).items()))) | {"more": "later"},
    }
    answers = [
        table.of_item(SEND, ours, created(ours)),
        table.of_item(SEND, ours, created(ours, replayed=True)),
        table.of_item(STATUS, ours, reordered),
        table.of_item(SEAL, ours, reordered),
    ]
    assert [answer.outcome for answer in answers] == [Outcome.RECEIPT] * 4
    assert len({answer.receipt.text for answer in answers if answer.receipt}) == 1


def test_a_receipt_for_another_key_is_unknown_and_kept_as_evidence_only() -> None:
    ours, other = operation("note-7"), operation("note-8")
    answer = table.of_item(SEND, ours, created(ours, receipt=receipt(other)))
    assert (answer.outcome, answer.reason, answer.receipt) == (Outcome.UNKNOWN, "foreign_receipt", None)
    assert answer.problem is not None
    assert as_object(answer.problem["received"])["operation_id"] == "note-8"


@pytest.mark.parametrize("kind", [SEND, STATUS, SEAL])
def test_our_key_with_another_hash_is_a_conflict(kind: CallKind) -> None:
    ours = operation()
    held = receipt(ours, args_hash="f" * 64)
    item = created(ours, receipt=held) if kind is SEND else held | {"state": "completed"}
    answer = table.of_item(kind, ours, item)
    assert (answer.outcome, answer.reason, answer.receipt) == (Outcome.CONFLICT, "other_hash", None)


@pytest.mark.parametrize("member", ["id", "folder", "version", "etag", "location", "created_at"])
@pytest.mark.parametrize("value", [None, "", 0, -1, True, 1.0, 2**53, "a\x00b", "\ud800", ["x"], {}])
def test_a_receipt_whose_note_is_incomplete_proves_nothing(member: str, value: object) -> None:
    ours = operation()
    note = as_object(receipt(ours)["note"])
    answer = table.of_item(SEND, ours, created(ours, receipt=receipt(ours, note=note | {member: value})))
    assert (answer.outcome, answer.reason) == (Outcome.UNKNOWN, "malformed_receipt")
    left_out = {name: held for name, held in note.items() if name != member}
    answer = table.of_item(STATUS, ours, receipt(ours, note=left_out) | {"state": "completed"})
    assert (answer.outcome, answer.reason) == (Outcome.UNKNOWN, "malformed_receipt")


@pytest.mark.parametrize(
    "changes",
    [
        {"args_hash": None},
        {"args_hash": "no hash"},
        {"args_hash": "F" * 64},
        {"operation_id": None},
        {"operation_id": 7},
        {"note": None},
        {"note": []},
    ],
)
def test_a_receipt_without_key_hash_or_note_proves_nothing(changes: Mapping[str, object]) -> None:
    ours = operation()
    answer = table.of_item(SEND, ours, created(ours, receipt=receipt(ours, **changes)))
    assert (answer.outcome, answer.reason) == (Outcome.UNKNOWN, "malformed_receipt")


@pytest.mark.parametrize("status", [None, "201", True, 202, 204, 302, 2**70, -1])
def test_a_receipt_under_a_status_that_is_no_success_proves_nothing(status: object) -> None:
    ours = operation()
    answer = table.of_item(SEND, ours, created(ours, status=status))
    assert (answer.outcome, answer.reason) == (Outcome.UNKNOWN, "malformed_item")
    # Stored as an integer: one that does not fit must not get there.
    assert answer.http_status is None or 100 <= answer.http_status <= 599


@pytest.mark.parametrize("body", ["busy", 7, [], True])
def test_a_problem_that_is_no_object_is_unknown(body: object) -> None:
    ours = operation()
    answer = table.of_item(SEND, ours, turned_away(ours, 503, body))
    assert (answer.outcome, answer.reason) == (Outcome.UNKNOWN, "malformed_item")


@pytest.mark.parametrize("kind", [STATUS, SEAL])
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("sealed", Outcome.SEALED),
        ("in_progress", Outcome.IN_PROGRESS),
        ("not_found", Outcome.NOT_FOUND),
        ("unknown", Outcome.UNKNOWN),
        ("Sealed", Outcome.UNKNOWN),
        (None, Outcome.UNKNOWN),
    ],
)
def test_each_state_of_a_key(kind: CallKind, state: object, expected: Outcome) -> None:
    item = {"operation_id": "note-7", "state": state, "as_of": "…", "args_hash": None, "note": None}
    assert table.of_item(kind, operation(), item).outcome is expected


def test_a_failure_before_sending_is_not_sent_and_after_it_unknown() -> None:
    assert table.of_failure(Failure(False, Reason.DNS)).outcome is Outcome.NOT_SENT
    assert table.of_failure(Failure(True, Reason.TIMEOUT)).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("operations", [1, 2])
@pytest.mark.parametrize(("coded", "expected"), CODES.items())
def test_a_problem_of_a_whole_request(operations: int, coded: tuple[str, int], expected: Outcome) -> None:
    code, status = coded
    answer = whole(status, problem(status, code), operations=operations)
    match expected:
        case Outcome.REFUSED if operations > 1:
            reason = "batch_too_large" if status == 413 else "batch_refused"
            assert (answer.outcome, answer.reason) == (Outcome.NOT_EXECUTED, reason)
        case Outcome.REFUSED | Outcome.UNAUTHENTICATED | Outcome.NOT_EXECUTED:
            assert (answer.outcome, answer.reason) == (expected, code)
        case _:
            # A proof is about one key, and a whole request names none.
            assert (answer.outcome, answer.reason) == (Outcome.UNKNOWN, code)


def test_the_words_for_a_refused_batch_are_those_the_outbox_sends_alone_for() -> None:
    assert set(SEND_ALONE) == {Reason.BATCH_TOO_LARGE, Reason.BATCH_REFUSED}


@pytest.mark.parametrize("kind", [SEND, STATUS, SEAL])
@pytest.mark.parametrize("status", [201, 204, 301, 307, 400, 401, 403, 404, 413, 429, 500, 502, 503, 504])
@pytest.mark.parametrize(
    "body", [b"", b"<html>Bad Gateway</html>", b"[]", b"null", b'{"code": "busy"', b"{}"]
)
def test_a_page_that_is_no_problem_of_ours_is_unknown(kind: CallKind, status: int, body: bytes) -> None:
    answer = whole(status, body, kind)
    assert (answer.outcome, answer.reason) == (Outcome.UNKNOWN, f"http_{status}")


@pytest.mark.parametrize("kind", [STATUS, SEAL])
def test_a_refused_status_or_seal_request_is_unknown_for_all(kind: CallKind) -> None:
    assert whole(413, problem(413, "too_large"), kind, operations=5).outcome is Outcome.UNKNOWN


def test_internal_500_is_unknown() -> None:
    answer = whole(500, problem(500, "internal", attempt="unknown"))
    assert (answer.outcome, answer.reason) == (Outcome.UNKNOWN, "internal")


def test_retry_after_comes_from_the_header_first_and_from_the_problem_otherwise() -> None:
    said = problem(503, "busy", retry={"same_key": True, "new_key": False, "after_s": 4})
    assert whole(503, said, after_s=9.0).retry_after_s == 9.0
    assert whole(503, said).retry_after_s == 4.0
    ours = operation()
    assert table.of_item(SEND, ours, turned_away(ours, 503, said)).retry_after_s == 4.0


def test_a_hostile_problem_is_kept_in_a_form_that_can_be_stored() -> None:
    nested: object = "deep"
    for _ in range(500):
        nested = {"in": nested}
    hostile = problem(403, "folder_not_writable") | {
        "detail": "nul \x00 and \ud800 " + "x" * 100_000,
        "a\x00b": 1,
        "errors": list(range(10_000)),
        "nested": nested,
        "big": 10**400,
        "infinite": 1e999,
        "permitted_folders": ["drafts"],
    }
    ours = operation()
    answer = table.of_item(SEND, ours, turned_away(ours, 403, hostile))
    assert answer.outcome is Outcome.REFUSED
    assert answer.problem is not None
    text = json.dumps(answer.problem, ensure_ascii=False, allow_nan=False)
    assert "\\u0000" not in text
    assert len(text.encode()) < 20_000
    assert answer.problem["permitted_folders"] == ["drafts"]


def as_object(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return {str(name): member for name, member in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] (JSON)
