"""Bad input is refused at enqueue: all faults at once with their paths, nothing written, the transaction usable."""

import json
from collections.abc import Generator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from oncebox_models.arguments import TEXT_BYTES
from oncebox_outbox import Enqueued, Intent, InvalidOperation, Outbox, UnknownDestination, Write, registry
from oncebox_outbox.intents import CONTEXT_BYTES
from tests.integration.outbox import scenes
from tests.integration.outbox.scenes import CAPABILITIES, OUTBOX, WHY, Sender, write
from tests.support import databases
from tests.support.databases import DatabaseServer

FOREIGN = UUID("00000000-0000-0000-0000-0000000000ff")
GOOD_ARGUMENTS: dict[str, object] = {"folder": "drafts", "title": "t", "text": "t"}


@pytest.fixture(scope="module")
def module_sender(database_server: DatabaseServer, postgres_url: str) -> Generator[Sender]:
    """One database for all these tests: nothing is written to it."""
    with (
        database_server.clone(database_server.template("sender", databases.migrate_sender)) as url,
        scenes.sender(url) as parties,
    ):
        yield parties


def _faults(sender: Sender, bad: Write, outbox: Outbox = OUTBOX) -> dict[str, str]:
    """Enqueue between two things of the caller's own; what was refused, after checking that nothing was written."""
    with sender.agent.connect() as connection, Session(connection) as session:
        session.execute(sa.text("create temp table mine (n int) on commit drop"))
        with pytest.raises(InvalidOperation) as refused:
            outbox.enqueue(session, bad)
        session.execute(sa.text("insert into mine values (1)"))
        assert session.scalar(sa.text("select count(*) from mine")) == 1
        assert session.scalar(sa.text("select count(*) from oncebox.operation")) == 0
        assert session.scalar(sa.text("select count(*) from oncebox.intent")) == 0
        session.rollback()
    assert refused.value.faults, "refused without a fault"
    assert str(refused.value) == "; ".join(map(str, refused.value.faults))
    paths = [fault.path for fault in refused.value.faults]
    assert len(set(paths)) == len(paths)
    return {fault.path: fault.message for fault in refused.value.faults}


def _arguments(**changes: object) -> Write:
    return Write(WHY, GOOD_ARGUMENTS | changes, operation_id="note-7")


def _intent(**changes: Any) -> Write:
    right: dict[str, Any] = {"run": "r", "step": "s", "purpose": "why"}
    intent = Intent(**right | changes)
    return Write(intent, GOOD_ARGUMENTS, operation_id="note-7")


LONE, NUL = "a\ud800", "a\x00"

ONE_FAULT = [
    pytest.param(write(""), "operation_id", "is blank", id="F7 empty id"),
    pytest.param(write(" "), "operation_id", "is blank", id="F7 space id"),
    pytest.param(write("\u200b"), "operation_id", "is blank", id="F7 invisible id"),
    pytest.param(write("x" * 129), "operation_id", "has 129 characters; at most 128", id="id of 129"),
    pytest.param(write(NUL), "operation_id", "letters, digits", id="NUL in the id"),
    pytest.param(write(LONE), "operation_id", "letters, digits", id="lone surrogate in the id"),
    pytest.param(_arguments(title=NUL), "arguments.title", "NUL character at position 1", id="NUL in the title"),
    pytest.param(_arguments(text=LONE), "arguments.text", "lone surrogate", id="lone surrogate in the text"),
    pytest.param(_arguments(folder=NUL), "arguments.folder", "NUL", id="NUL in the folder"),
    pytest.param(_arguments(folder=" "), "arguments.folder", "is blank", id="blank folder"),
    pytest.param(_arguments(title="x" * 301), "arguments.title", "has 301 characters; at most 300", id="long title"),
    pytest.param(_arguments(text="x" * (TEXT_BYTES + 1)), "arguments.text", "262,145 bytes of UTF-8; at most 262,144", id="F48 large text"),
    pytest.param(_arguments(authorized=True), "arguments.authorized", "remove it", id="an argument too many"),
    pytest.param(_arguments(title=float("nan")), "arguments.title", "must be a string", id="NaN as an argument"),
    pytest.param(Write(WHY, {}, "note.delete", "note-7"), "kind", "known kinds: note.create, note.revise", id="unknown kind"),
    pytest.param(_intent(run=" "), "intent.run", "is blank", id="blank run"),
    pytest.param(_intent(step=NUL), "intent.step", "NUL", id="NUL in the step"),
    pytest.param(_intent(purpose=LONE), "intent.purpose", "lone surrogate", id="lone surrogate in the purpose"),
    pytest.param(_intent(context={"a": [float("nan")]}), "intent.context.a[0]", "nan is not a JSON number", id="NaN"),
    pytest.param(_intent(context={"a": float("-inf")}), "intent.context.a", "-inf is not a JSON number", id="infinity"),
    pytest.param(_intent(context={"a": {NUL: 1}}), "intent.context.a", "NUL", id="NUL in a key"),
    pytest.param(_intent(context={"a": [[[[[[[[1]]]]]]]]}), "intent.context.a[0][0][0][0][0][0][0]", "too deeply", id="depth"),
    pytest.param(_intent(context={"a": "x" * CONTEXT_BYTES}), "intent.context", "65,544 bytes of JSON; at most 65,536", id="F48 large context"),
    pytest.param(_intent(trace_context={"a": NUL}), "intent.trace_context.a", "NUL", id="NUL in the trace"),
    pytest.param(write(ordering_key=""), "ordering_key", "is blank", id="blank ordering key"),
    pytest.param(write(ordering_key="x" * 201), "ordering_key", "has 201 characters; at most 200", id="long ordering key"),
    pytest.param(write(deadline=timedelta(0)), "deadline", "is not in the future", id="no time"),
    pytest.param(write(deadline=timedelta(seconds=-1)), "deadline", "is not in the future", id="negative time"),
    pytest.param(write(deadline=datetime(2999, 1, 1)), "deadline", "has no time zone", id="naive deadline"),  # noqa: DTZ001
    pytest.param(write(deadline=datetime(2020, 1, 1, tzinfo=UTC)), "deadline", "is past; by the database's clock", id="past deadline"),
    pytest.param(write(deadline=datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))), "deadline", "is past", id="earliest deadline"),
    pytest.param(write(deadline=timedelta(days=7, seconds=1)), "deadline", "168.0 h ahead; the receiver admits at most 168.0 h", id="beyond the window"),
    pytest.param(write(deadline=timedelta.max), "deadline", "h ahead; the receiver admits at most", id="longest deadline"),
    pytest.param(write(deadline=datetime.max.replace(tzinfo=UTC)), "deadline", "h ahead", id="latest deadline"),
    pytest.param(write(deadline=3600), "deadline", "must be a datetime or timedelta, got int", id="a number as deadline"),
    pytest.param(write(supersedes=FOREIGN), "supersedes", f"no operation {FOREIGN}", id="supersedes nothing"),
    pytest.param(write(supersedes="note-6"), "supersedes", "must be a UUID, got str", id="supersedes a name"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "path", "said"), ONE_FAULT)
def test_bad_input_is_refused_with_its_path(module_sender: Sender, bad: Write, path: str, said: str) -> None:
    faults = _faults(module_sender, bad)
    assert list(faults) == [path]
    assert said in faults[path]


def test_all_faults_are_told_at_once(module_sender: Sender) -> None:
    everything_wrong = Write(
        Intent("", "a\nb", " ", {"x": float("inf")}),
        {"folder": " ", "title": 7, "colour": "red"},
        operation_id="\u200b",
        deadline=datetime(2020, 1, 1, tzinfo=UTC),
        ordering_key=" ",
        supersedes=FOREIGN,
    )
    faults = _faults(module_sender, everything_wrong, Outbox(" ", "a/b", "nowhere"))
    assert faults.keys() == {
        "tenant", "principal", "destination", "intent.run", "intent.step", "intent.purpose", "intent.context.x",
        "arguments.folder", "arguments.title", "arguments.text", "arguments.colour", "operation_id", "ordering_key",
        "deadline", "supersedes",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["nowhere", "Notes"])
def test_an_unknown_destination_names_those_that_are_registered(module_sender: Sender, name: str) -> None:
    with Session(module_sender.agent) as session:
        with pytest.raises(UnknownDestination, match="is not registered; registered destinations: notes"):
            Outbox("demo", "researcher", name).enqueue(session, write())
        assert session.scalar(sa.text("select 1")) == 1


@pytest.mark.parametrize("name", ["", "a\x00", "a/b", "\ud800", "x" * 129])
def test_a_destination_that_can_be_none_is_refused_without_asking_for_it(
    module_sender: Sender, name: str
) -> None:
    faults = _faults_of_party(module_sender, name)
    assert "destination" in faults


def _faults_of_party(sender: Sender, name: str) -> set[str]:
    with Session(sender.agent) as session:
        with pytest.raises(UnknownDestination) as refused:
            Outbox("demo", "researcher", name).enqueue(session, write())
        assert session.scalar(sa.text("select 1")) == 1
    return {fault.path for fault in refused.value.faults}


@pytest.mark.parametrize(
    ("tenant", "principal", "path"),
    [("", "p", "tenant"), ("t", "a\x00", "principal"), ("t", "x" * 129, "principal")],
)
def test_a_party_that_can_be_none_is_refused(
    module_sender: Sender, tenant: str, principal: str, path: str
) -> None:
    assert list(_faults(module_sender, write(), Outbox(tenant, principal))) == [path]


def test_the_window_is_that_of_the_receiver_as_last_seen(sender: Sender) -> None:
    registry.see(sender.worker, "notes", replace(CAPABILITIES, admission_window_s=7200.0))
    with Session(sender.agent) as session:
        late = _faults(sender, write(deadline=timedelta(hours=2, seconds=1)))
        assert late == {"deadline": "is 2.0 h ahead; the receiver admits at most 2.0 h"}
        assert OUTBOX.enqueue(session, write(deadline=timedelta(hours=2))).created


@pytest.mark.parametrize("size", [TEXT_BYTES - 1, TEXT_BYTES])
def test_sizes_up_to_the_limit_are_accepted(sender: Sender, size: int) -> None:
    """F48: one byte under, and the limit itself."""
    id = sender.enqueue_one(text="x" * size)
    assert len(sender.operation(id).arguments) > size


def test_every_text_that_can_be_stored_is_kept_as_it_is(sender: Sender) -> None:
    strange = '\x01\x1f\x7f\u2028\ufffe\U0001f600e\u0301 \r\n\\"/'
    context = {"k\u2028": [strange, 10**300, 1e-300, True, None]}
    id = sender.enqueue_one(text=strange, intent=Intent("r", "s", "why\n" + strange, context))
    row = sender.operation(id)
    (intent,) = sender.rows("select purpose, context from oncebox.intent")
    assert json.loads(row.arguments)["text"] == strange
    assert intent.purpose == "why\n" + strange
    assert intent.context["k\u2028"][0] == strange


def test_a_bad_item_never_harms_its_neighbours(sender: Sender) -> None:
    with Session(sender.agent) as session, session.begin():
        outcomes = OUTBOX.enqueue_many(
            session,
            [
                write("a"),
                write("b", text=NUL),
                write("c", deadline=timedelta(days=300)),
                write("d", supersedes=FOREIGN),
                write("e"),
            ],
        )
    assert [type(outcome) for outcome in outcomes] == [
        Enqueued,
        InvalidOperation,
        InvalidOperation,
        InvalidOperation,
        Enqueued,
    ]
    assert [fault.path for outcome in outcomes if isinstance(outcome, InvalidOperation) for fault in outcome.faults] == [
        "arguments.text", "deadline", "supersedes",
    ]  # fmt: skip
    assert [row[0] for row in sender.rows("select operation_id from oncebox.operation order by 1")] == [
        "a",
        "e",
    ]


def test_another_partys_operation_cannot_be_superseded(sender: Sender) -> None:
    """Nor does the answer tell that it exists."""
    (theirs,) = sender.enqueue(write(), outbox=Outbox("other", "researcher"))
    with (
        Session(sender.agent) as session,
        pytest.raises(InvalidOperation, match=f"supersedes: no operation {theirs.id}"),
    ):
        OUTBOX.enqueue(session, write(supersedes=theirs.id))
