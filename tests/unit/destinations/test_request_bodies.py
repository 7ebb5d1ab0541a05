"""What is sent: the frozen bytes as they are, the same at every attempt, in as few requests as fit."""

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from oncebox_destinations import request_bodies
from oncebox_destinations.request_bodies import BatchLimits, Part
from oncebox_models.calls import Outgoing
from tests.unit.destinations.samples import CALL_ID, DEADLINE, operation


def shared_out(operations: list[Outgoing], limits: BatchLimits) -> list[Part]:
    return request_bodies.parts("items", operations, lambda of: request_bodies.send_item(CALL_ID, of), limits)


def test_the_frozen_arguments_are_sent_byte_for_byte() -> None:
    # No encoder would write these: odd spaces, an escape that need not be, a number that floats would change.
    frozen = '{"text" :  "\\u00e9é🐙\\/", "title":"a" ,"n":1.10}'
    ours = replace(operation(), arguments=frozen)
    body = request_bodies.body("items", [request_bodies.send_item(CALL_ID, ours)])
    assert b',"arguments":' + frozen.encode() + b"}]}" in body


def test_an_item_of_each_request() -> None:
    ours = operation()
    assert json.loads(request_bodies.send_item(CALL_ID, ours)) == {
        "operation_id": "note-7",
        "call_id": str(CALL_ID),
        "deadline": "2030-01-31T12:00:00.250000Z",
        "on_behalf_of": "demo/researcher",
        "kind": "note.create",
        "arguments": json.loads(ours.arguments),
    }
    assert json.loads(request_bodies.status_item(ours)) == {
        "operation_id": "note-7",
        "on_behalf_of": "demo/researcher",
    }
    assert json.loads(request_bodies.seal_item(ours)) == {
        "operation_id": "note-7",
        "on_behalf_of": "demo/researcher",
        "deadline": "2030-01-31T12:00:00.250000Z",
        "args_hash": ours.args_hash,
    }


def test_a_deadline_is_written_in_utc_whatever_zone_it_came_in() -> None:
    elsewhere = DEADLINE.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert request_bodies.moment(elsewhere) == request_bodies.moment(DEADLINE)
    with pytest.raises(ValueError, match="time zone"):
        request_bodies.moment(datetime(2030, 1, 1))  # noqa: DTZ001 (what is refused)


def test_a_part_never_exceeds_the_receivers_limits_and_nothing_is_lost() -> None:
    operations = [operation(f"note-{number}", text="x" * (number * 37 % 900)) for number in range(60)]
    limits = BatchLimits(items=7, bytes=3_000)
    shares = shared_out(operations, limits)
    for part in shares:
        assert len(part.items) <= limits.items
        assert len(request_bodies.body("items", part.items)) == part.size <= limits.bytes
    assert sorted(of.operation_id for part in shares for of in part.operations) == sorted(
        of.operation_id for of in operations
    )


def test_a_body_of_exactly_the_limit_is_one_request() -> None:
    operations = [operation("note-1"), operation("note-2")]
    (whole,) = shared_out(operations, BatchLimits())
    assert len(shared_out(operations, BatchLimits(bytes=whole.size))) == 1
    assert len(shared_out(operations, BatchLimits(bytes=whole.size - 1))) == 2


def test_one_operation_over_the_limit_goes_alone() -> None:
    small, large = operation("small"), operation("large", text="x" * 5_000)
    shares = shared_out([small, large], BatchLimits(bytes=1_000))
    assert [[of.operation_id for of in part.operations] for part in shares] == [["small"], ["large"]]


def test_no_request_holds_a_key_twice_so_that_keys_alone_tell_answers_apart() -> None:
    operations = [
        operation(f"note-{number}", principal=who) for number in range(50) for who in ("ann", "bob")
    ]
    shares = shared_out(operations, BatchLimits())
    assert len(shares) == 2
    assert all(len({of.operation_id for of in part.operations}) == 50 for part in shares)
