"""The sender's Python API, called with anything: taken as it is, or refused with all that is wrong, and never broken."""

import hashlib
import json
from collections.abc import Generator
from typing import Any

import pytest
import rfc8785
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection

from oncebox_outbox import Enqueued, InvalidOperation, Outbox, Write
from oncebox_outbox.errors import OperationNotFound
from tests.integration.outbox import scenes
from tests.proof.properties.budget import tries
from tests.proof.properties.strange_values import INTENT, RIGHT, anything, changes, intent, odd_text

STORED = sa.text(
    "select (select count(*) from oncebox.operation), (select count(*) from oncebox.outbox_entry),"
    " (select count(*) from oncebox.intent)"
)
OPERATION = sa.text(
    "select o.operation_id, o.kind, o.arguments, o.args_hash, o.deadline > now() as ahead, i.run, i.step, i.purpose,"
    " i.context from oncebox.operation o join oncebox.intent i on i.id = o.intent_id where o.id = :id"
)
PARTY = ("tenant", "principal", "destination")


@pytest.fixture(scope="module")
def engine(sender_database: str) -> Generator[sa.Engine, None, None]:
    with scenes.sender(sender_database) as parties:
        yield parties.agent


def call(connection: Connection, method: str, changed: dict[str, Any]) -> Enqueued | InvalidOperation:
    """One call with these arguments changed, in a part of the transaction that is undone again."""
    party = {"tenant": "demo", "principal": "researcher", "destination": "notes"}
    outbox = Outbox(**(party | {name: changed[name] for name in PARTY if name in changed}))
    direct = {
        name: value for name, value in changed.items() if name not in PARTY and not name.startswith("intent")
    }
    savepoint = connection.begin_nested()
    before = connection.execute(STORED).one()
    try:
        found: Enqueued = getattr(outbox, method)(connection, intent(changed), **(RIGHT[method] | direct))
    except InvalidOperation as refused:
        # Not even the savepoint is needed: nothing was stored, and the transaction is as it was.
        assert connection.execute(STORED).one() == before
        return refused
    else:
        check_stored(connection, found, method, changed)
        return found
    finally:
        savepoint.rollback()


def check_stored(connection: Connection, found: Enqueued, method: str, changed: dict[str, Any]) -> None:
    """What was taken is what was given, frozen, under the hash that both sides compute."""
    row = connection.execute(OPERATION, {"id": found.id}).one()
    given = RIGHT[method] | {
        name: value for name, value in changed.items() if name in (*RIGHT[method], "format")
    }
    given.pop("operation_id")
    wanted = {"format": "markdown"} | given
    assert json.loads(row.arguments) == wanted
    assert row.arguments.encode() == rfc8785.dumps(wanted)
    hashed = rfc8785.dumps({"v": 1, "kind": row.kind, "arguments": wanted})
    assert row.args_hash == hashlib.sha256(hashed).hexdigest()
    assert row.operation_id == found.operation_id
    assert row.ahead
    told = {name: changed.get(f"intent.{name}", value) for name, value in INTENT.items()}
    assert {name: getattr(row, name) for name in told} == told
    context = changed.get("intent.context")
    assert numbers_alike(row.context) == (numbers_alike(dict(context)) if context else None)


def numbers_alike(value: object) -> object:
    """JSON as it is after jsonb, which writes 7e16 as an integer: every number as the float that it stands for."""
    return json.loads(json.dumps(value), parse_int=float)


def faults(outcome: Enqueued | InvalidOperation) -> set[str]:
    return {str(fault) for fault in outcome.faults} if isinstance(outcome, InvalidOperation) else set()


@pytest.mark.parametrize("method", sorted(RIGHT))
@given(data=st.data())
@tries(150)
def test_anything_is_taken_or_refused_with_all_that_is_wrong(
    engine: sa.Engine, method: str, data: st.DataObject
) -> None:
    """F7, F48: never another exception, nothing stored by a refusal, no fault hidden behind another one."""
    changed = data.draw(changes(method))
    with engine.connect() as connection:
        together = call(connection, method, changed)
        each = [faults(call(connection, method, {name: value})) for name, value in changed.items()]
        assert connection.execute(sa.text("select 1")).scalar_one() == 1
    if isinstance(together, InvalidOperation):
        assert together.faults
        assert all(fault.path and fault.message for fault in together.faults)
        # A fault may name the moment it was found at, or a derived name: compared without the words after "by".
        missing = {fault.partition("; by ")[0] for fault in set[str]().union(*each)}
        missing -= {fault.partition("; by ")[0] for fault in faults(together)}
        assert {fault for fault in missing if "h ahead" not in fault} == set()
    else:
        assert each == [set()] * len(each)


@given(writes=st.lists(st.one_of(anything, st.none()), min_size=1, max_size=3))
@tries(60)
def test_arguments_of_any_shape_are_refused_by_their_item(engine: sa.Engine, writes: list[Any]) -> None:
    """`Write.arguments` and `kind` are what a tool hands on; a right write beside them is taken."""
    outbox = Outbox(tenant="demo", principal="researcher", destination="notes")
    right = scenes.write("note-7")
    given_ = [Write(scenes.WHY, value, operation_id=f"note-{n}") for n, value in enumerate(writes)]
    given_ += [
        Write(scenes.WHY, dict(right.arguments), kind=value, operation_id="note-8") for value in writes
    ]
    with engine.connect() as connection:
        *refused, taken = outbox.enqueue_many(connection, [*given_, right])
        assert isinstance(taken, Enqueued)
        assert all(isinstance(outcome, InvalidOperation) for outcome in refused)
        assert connection.execute(STORED).one() == (1, 1, 1)


@given(name=st.one_of(odd_text, anything))
@tries(60)
def test_an_operation_of_any_name_is_not_found(engine: sa.Engine, name: Any) -> None:
    outbox = Outbox(tenant="demo", principal="researcher", destination="notes")
    with engine.connect() as connection:
        for ask in (outbox.status, outbox.cancel):
            with pytest.raises(OperationNotFound):
                ask(connection, name)
        assert connection.execute(sa.text("select 1")).scalar_one() == 1
