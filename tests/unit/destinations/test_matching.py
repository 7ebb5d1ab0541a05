"""Answers are matched by key and principal, never by order; every operation gets exactly one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncebox_destinations.exchange import Reply
from oncebox_destinations.matching import answers
from oncebox_models.calls import Outgoing
from oncebox_models.outcomes import Outcome
from oncebox_models.states import CallKind
from tests.unit.destinations.samples import created, operation, problem, receipt, turned_away


def outcomes(operations: list[Outgoing], items: object) -> list[tuple[Outcome, str]]:
    reply = Reply(200, {}, json.dumps({"items": items}).encode())
    found = answers(CallKind.SEND, operations, reply, after_s=None)
    assert set(found) == {sent.id for sent in operations}
    return [(found[sent.id].outcome, found[sent.id].reason) for sent in operations]


@given(st.permutations(list(range(6))))
def test_shuffled_items_reach_their_operations(order: list[int]) -> None:
    sent = [operation(f"note-{number}") for number in range(6)]
    items = [
        created(of) if number % 2 else turned_away(of, 409, problem(409, "operation_sealed"))
        for number, of in enumerate(sent)
    ]
    expected = [(Outcome.SEALED, "operation_sealed"), (Outcome.RECEIPT, "created")] * 3
    assert outcomes(sent, [items[number] for number in order]) == expected


def test_a_missing_item_is_unknown_and_its_neighbour_is_not_harmed() -> None:
    first, second = operation("note-1"), operation("note-2")
    assert outcomes([first, second], [created(second)]) == [
        (Outcome.UNKNOWN, "missing_item"),
        (Outcome.RECEIPT, "created"),
    ]


def test_a_doubled_item_is_unknown_even_when_both_agree() -> None:
    first, second = operation("note-1"), operation("note-2")
    assert outcomes([first, second], [created(first), created(second), created(first)]) == [
        (Outcome.UNKNOWN, "doubled_item"),
        (Outcome.RECEIPT, "created"),
    ]


def test_a_foreign_item_answers_nobody() -> None:
    ours = operation("note-1")
    assert outcomes([ours], [created(operation("note-2"))]) == [(Outcome.UNKNOWN, "missing_item")]
    assert outcomes([ours], [created(operation("note-2")), created(ours)]) == [(Outcome.RECEIPT, "created")]


def test_an_item_for_another_principal_answers_nobody() -> None:
    ours = operation("note-1")
    assert outcomes([ours], [created(ours, on_behalf_of="demo/somebody-else")]) == [
        (Outcome.UNKNOWN, "missing_item")
    ]
    assert outcomes([ours], [created(ours, on_behalf_of="demo/researcher")]) == [(Outcome.RECEIPT, "created")]


def test_receipts_exchanged_between_two_operations_settle_neither() -> None:
    first, second = operation("note-1"), operation("note-2")
    items = [created(first, receipt=receipt(second)), created(second, receipt=receipt(first))]
    assert outcomes([first, second], items) == [(Outcome.UNKNOWN, "foreign_receipt")] * 2


@pytest.mark.parametrize("items", [None, {}, "x", 7])
def test_an_answer_without_a_list_of_items_is_garbage_for_all(items: object) -> None:
    assert outcomes([operation("note-1"), operation("note-2")], items) == [(Outcome.UNKNOWN, "garbage")] * 2


@pytest.mark.parametrize("item", [None, 7, "note-1", [], {}, {"operation_id": None}, {"operation_id": 1}])
def test_items_that_name_no_operation_are_passed_over(item: object) -> None:
    ours = operation("note-1")
    assert outcomes([ours], [item, created(ours)]) == [(Outcome.RECEIPT, "created")]
    assert outcomes([ours], [item]) == [(Outcome.UNKNOWN, "missing_item")]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b'{"items": [',
        b'{"items": []} trailing',
        b'{"items": [NaN]}',
        b'{"items": [], "items": []}',
        b"[" * 100_000,
        b'{"items": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"items": [' + b"9" * 10_000 + b"]}",
    ],
)
def test_a_body_that_is_not_the_promised_json_is_garbage(body: bytes) -> None:
    ours = operation("note-1")
    answer = answers(CallKind.SEND, [ours], Reply(200, {}, body), after_s=None)[ours.id]
    assert (answer.outcome, answer.reason) == (Outcome.UNKNOWN, "garbage")
