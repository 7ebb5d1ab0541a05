"""Enqueue writes into the caller's transaction: all or nothing, once for an identity, in one round trip."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from oncebox_models.canonical import args_hash
from oncebox_models.outcomes import Outcome
from oncebox_models.states import State, Wanted
from oncebox_outbox import ArgumentConflict, Enqueued, Intent, Outbox, SchemaMissing, registry
from oncebox_outbox.intents import derived_operation_id
from tests.integration.outbox.scenes import CAPABILITIES, LEVELS, OUTBOX, WHY, Sender, counting, saved, write


class Base(DeclarativeBase):
    """The caller's own tables."""


class Finding(Base):
    """A row of the agent's own."""

    __tablename__ = "finding"

    id: Mapped[int] = mapped_column(primary_key=True)
    claim: Mapped[str] = mapped_column(unique=True)


def _save(session: Session, operation_id: str | None = "note-7", text: str = "Reef B") -> Enqueued:
    return OUTBOX.save_note(
        session, WHY, operation_id=operation_id, folder="drafts", title="Finding 7", text=text
    )


def _counts(sender: Sender) -> tuple[int, int, int]:
    return sender.scalar("select count(*) from oncebox.intent"), sender.scalar("select count(*) from oncebox.operation"), sender.scalar("select count(*) from oncebox.outbox_entry")  # fmt: skip


def test_a_committed_write_is_one_intent_one_operation_one_entry(sender: Sender) -> None:
    with Session(sender.agent) as session, session.begin():
        save = _save(session)
    assert (save.operation_id, save.created, save.state, save.receipt) == (
        "note-7",
        True,
        State.PENDING,
        None,
    )
    assert _counts(sender) == (1, 1, 1)
    row = sender.operation(save.id)
    assert row.arguments == '{"folder":"drafts","format":"markdown","text":"Reef B","title":"Finding 7"}'
    assert row.args_hash == args_hash("note.create", row.arguments)
    assert (row.tenant, row.principal, row.destination) == ("demo", "researcher", "notes")
    assert row.deadline - row.created_at == pytest.approx(timedelta(hours=72), abs=timedelta(seconds=5))
    assert sender.live_entry(save.id).deadline == row.deadline


def test_the_agents_own_rows_and_the_write_commit_together(sender: Sender) -> None:
    """F54, C51: no hook after the commit is needed, and the ids are there before it."""
    Base.metadata.create_all(sender.agent)
    with Session(sender.agent) as session, session.begin():
        session.add(Finding(id=7, claim="Reef B recovers faster"))
        save = _save(session)
        assert (save.operation_id, _counts(sender)) == ("note-7", (0, 0, 0))
    assert sender.operation(save.id).operation_id == "note-7"
    assert sender.scalar("select count(*) from finding") == 1
    assert _counts(sender) == (1, 1, 1)


def test_what_is_rolled_back_leaves_nothing(sender: Sender) -> None:
    with Session(sender.agent) as session:
        _save(session)
        session.rollback()
    assert _counts(sender) == (0, 0, 0)


def test_a_savepoint_that_is_rolled_back_leaves_nothing_of_its_own(sender: Sender) -> None:
    with Session(sender.agent) as session, session.begin():
        _save(session, "note-1")
        with session.begin_nested() as savepoint:
            _save(session, "note-2")
            savepoint.rollback()
        _save(session, "note-3")
    assert [row[0] for row in sender.rows("select operation_id from oncebox.operation order by 1")] == [
        "note-1",
        "note-3",
    ]
    assert _counts(sender) == (1, 2, 2)


def test_enqueue_does_not_commit(sender: Sender) -> None:
    with Session(sender.agent) as session:
        _save(session)
        assert _counts(sender) == (0, 0, 0)
        session.commit()
    assert _counts(sender) == (1, 1, 1)


def test_enqueue_does_not_flush_the_callers_objects(sender: Sender) -> None:
    """A pending object that cannot be inserted yet must not fail inside our call."""
    Base.metadata.create_all(sender.agent)
    statements = counting(sender.agent)
    with Session(sender.agent) as session, session.begin():
        finding = Finding(id=7, claim="Reef B")
        session.add(finding)
        _save(session)
        OUTBOX.status(session, "note-7")
        OUTBOX.cancel(session, "note-7")
        assert finding in session.new
        assert not [statement for statement in statements if "finding" in statement]


def test_a_new_write_is_one_round_trip(sender: Sender) -> None:
    statements = counting(sender.agent)
    with Session(sender.agent) as session, session.begin():
        _save(session)
        OUTBOX.enqueue_many(session, [write(f"more-{n}") for n in range(50)])
    assert [statement.split("*/")[0] for statement in statements] == ["/* oncebox:enqueue "] * 2


def test_an_outbox_works_on_a_connection_too(sender: Sender) -> None:
    with sender.agent.begin() as connection:
        assert OUTBOX.enqueue(connection, write()).created
    assert _counts(sender) == (1, 1, 1)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("nested", [False, True], ids=["plain", "savepoint"])
def test_the_same_write_again_is_the_existing_operation(sender: Sender, level: str, nested: bool) -> None:
    """Invariant 6, F40: the state comes along with the id."""
    engine = sender.agent.execution_options(isolation_level=level)

    def save(text: str = "Reef B") -> Enqueued:
        with Session(engine) as session, session.begin():
            if nested:
                with session.begin_nested():
                    return _save(session, text=text)
            return _save(session, text=text)

    first, again = save(), save()
    assert (first.created, again.created, again.id, again.state) == (True, False, first.id, State.PENDING)
    with pytest.raises(ArgumentConflict, match="'note-7' exists with other arguments \\(it is pending\\)"):
        save("changed")
    assert _counts(sender) == (1, 1, 1)


@pytest.mark.parametrize("level", LEVELS)
def test_a_conflict_leaves_the_transaction_usable_and_sends_nothing(sender: Sender, level: str) -> None:
    """R9, R29, R36: no exception of the database is behind it."""
    sender.enqueue_one()
    before = sender.everything()
    with Session(sender.agent.execution_options(isolation_level=level)) as session, session.begin():
        with pytest.raises(ArgumentConflict) as conflict:
            _save(session, text="changed")
        assert (conflict.value.operation_id, conflict.value.state) == ("note-7", State.PENDING)
        assert sender.everything() == before
        _save(session, "note-8")
    assert _counts(sender)[1:] == (2, 2)


def test_a_write_twice_in_one_transaction_is_one_operation(sender: Sender) -> None:
    with Session(sender.agent) as session, session.begin():
        assert [_save(session).created, _save(session).created] == [True, False]
    assert _counts(sender) == (1, 1, 1)


def test_a_name_twice_in_one_batch_is_one_operation(sender: Sender) -> None:
    with Session(sender.agent) as session, session.begin():
        first, same, other = OUTBOX.enqueue_many(
            session, [write("a"), write("a"), write("a", text="changed")]
        )
    assert isinstance(first, Enqueued)
    assert isinstance(same, Enqueued)
    assert (first.created, same.created, same.id) == (True, False, first.id)
    assert isinstance(other, ArgumentConflict)
    assert _counts(sender) == (1, 1, 1)


def test_outcomes_come_in_the_order_of_the_writes(sender: Sender) -> None:
    sender.enqueue_one("m")
    names = ["z", "m", "a", "b-wrong ", "k"]
    with Session(sender.agent) as session, session.begin():
        outcomes = OUTBOX.enqueue_many(session, [write(name) for name in names])
    told = [(o.operation_id, o.created) if isinstance(o, Enqueued) else type(o).__name__ for o in outcomes]
    assert told == [("z", True), ("m", False), ("a", True), "InvalidOperation", ("k", True)]


def test_nothing_to_enqueue_is_nothing(sender: Sender) -> None:
    with Session(sender.agent) as session, session.begin():
        assert OUTBOX.enqueue_many(session, []) == []


def test_a_saved_operation_enqueued_again_brings_its_receipt(sender: Sender) -> None:
    """R26, R28: the same receipt, and nothing is sent again."""
    id = sender.enqueue_one()
    call = sender.claim_one(id)
    answers = saved(call)
    sender.settle(call, answers)
    before = sender.everything()
    (again,) = sender.enqueue(write())
    assert (again.id, again.created, again.state, again.receipt) == (
        id,
        False,
        State.SAVED,
        answers[id].receipt,
    )
    assert again.say.startswith(
        "Exists already; nothing more is sent. Saved: note-7 is note id-of-note-7 version 1"
    )
    assert sender.everything() == before


def _refused(sender: Sender, *, sealed: bool) -> UUID:
    id = sender.enqueue_one()
    problem = {"detail": "You may not write to drafts.", "permitted_folders": ["inbox"]}
    sender.answer(
        sender.claim_one(id), Outcome.REFUSED, "folder_not_writable", problem=problem, http_status=403
    )
    if sealed:
        sender.answer(sender.claim_one(id), Outcome.SEALED, "sealed")
    return id


def test_a_refused_operation_enqueued_again_sends_nothing_and_says_what_to_do(sender: Sender) -> None:
    """F39, F40: a dead operation's id is not handed out as if it lived."""
    id = _refused(sender, sealed=True)
    before = sender.everything()
    (again,) = sender.enqueue(write())
    assert (again.id, again.created, again.state, again.reason) == (
        id,
        False,
        State.REFUSED,
        "folder_not_writable",
    )
    assert again.say == (
        "Exists already; nothing more is sent. REFUSED: note-7 will never be saved under this id:"
        " folder_not_writable: You may not write to drafts. Folders you may write to: inbox."
        " Correct it and enqueue under a new operation_id."
    )
    assert sender.everything() == before


def test_while_its_refusal_is_made_final_an_operation_is_not_said_to_be_sent_again(sender: Sender) -> None:
    _refused(sender, sealed=False)
    (again,) = sender.enqueue(write())
    assert (again.state, again.wanted) == (State.RETRYING, Wanted.REFUSE)
    assert "the receiver refused note-7 (folder_not_writable: You may not write to drafts." in again.say
    assert "being made final" in again.say


def test_an_operation_in_back_off_enqueued_again_is_neither_discarded_nor_doubled(sender: Sender) -> None:
    """F39."""
    id = sender.enqueue_one()
    sender.answer(sender.claim_one(id), Outcome.UNKNOWN, "timeout")
    (again,) = sender.enqueue(write())
    assert (again.id, again.created, again.state) == (id, False, State.UNKNOWN)
    assert again.say.startswith(
        "Exists already; nothing more is sent. OUTCOME UNKNOWN: note-7 may or may not be saved (last try: timeout)"
    )


def test_an_operation_whose_access_was_lost_says_so_when_enqueued_again(sender: Sender) -> None:
    id = sender.enqueue_one()
    for _ in range(3):
        sender.answer(sender.claim_one(id), Outcome.UNAUTHENTICATED, "unauthenticated")
    (again,) = sender.enqueue(write())
    assert again.state is State.NEEDS_REVIEW
    assert "does not accept our token" in again.say


def test_an_id_that_is_left_out_is_derived_from_run_step_and_kind(sender: Sender) -> None:
    """F7: left out is not the same as blank. A second try of the same step is the same operation."""
    (first,) = sender.enqueue(write(None))
    (again,) = sender.enqueue(write(None))
    (elsewhere,) = sender.enqueue(write(None, intent=Intent("run-42", "conclude", "keep it")))
    assert first.operation_id == derived_operation_id(WHY, "note.create")
    assert (again.id, again.created) == (first.id, False)
    assert elsewhere.created


def test_a_reworded_second_try_of_a_step_is_a_conflict_and_not_a_second_note(sender: Sender) -> None:
    """R36."""
    sender.enqueue(write(None))
    with Session(sender.agent) as session, session.begin(), pytest.raises(ArgumentConflict):
        OUTBOX.enqueue(session, write(None, text="reworded"))
    assert _counts(sender) == (1, 1, 1)


def test_the_first_intent_of_a_place_stays(sender: Sender) -> None:
    sender.enqueue(write("a", intent=Intent("run-1", "step", "first", {"model": "a"})))
    sender.enqueue(
        write("b", intent=Intent("run-1", "step", "second", {"model": "b"})),
        write("c", intent=Intent("run-1", "step", "third")),
    )
    (row,) = sender.rows("select purpose, context, trace_context from oncebox.intent")
    assert (row.purpose, row.context, row.trace_context) == ("first", {"model": "a"}, None)
    assert sender.scalar("select count(distinct intent_id) from oncebox.operation") == 1


def test_in_one_batch_the_first_intent_of_a_place_is_that_of_the_first_write(sender: Sender) -> None:
    sender.enqueue(*(write(name, intent=Intent("r", "s", f"purpose of {name}")) for name in ("z", "m", "a")))
    assert sender.scalar("select purpose from oncebox.intent") == "purpose of z"


def test_the_parties_do_not_meet(sender: Sender) -> None:
    """R38, R39: another tenant's or principal's note-7 is another operation."""
    others = [OUTBOX, Outbox("demo", "writer"), Outbox("other", "researcher")]
    ids = {sender.enqueue(write(text=f"of {n}"), outbox=outbox)[0].id for n, outbox in enumerate(others)}
    assert len(ids) == 3
    assert _counts(sender) == (3, 3, 3)


@pytest.mark.parametrize(
    ("deadline", "ahead"),
    [
        (timedelta(hours=1), timedelta(hours=1)),
        (timedelta(days=7), timedelta(days=7)),
        (datetime.now(UTC) + timedelta(days=2), timedelta(days=2)),
    ],
)
def test_a_deadline_is_kept(sender: Sender, deadline: datetime | timedelta, ahead: timedelta) -> None:
    row = sender.operation(sender.enqueue_one(deadline=deadline))
    # The moment among them was taken when the tests were collected, which may be minutes ago.
    assert row.deadline - row.created_at == pytest.approx(ahead, abs=timedelta(minutes=30))


def test_a_duration_counts_from_the_enqueue_however_old_the_transaction_is(sender: Sender) -> None:
    with sender.agent.begin() as connection:
        connection.execute(sa.text("select pg_sleep(0.3)"))
        save = OUTBOX.enqueue(connection, write(deadline=timedelta(milliseconds=200)))
    row = sender.operation(save.id)
    assert row.deadline > row.created_at + timedelta(milliseconds=400)


def test_without_a_deadline_the_receivers_shorter_window_is_the_limit(sender: Sender) -> None:
    """Else nothing could be enqueued without one."""
    registry.see(sender.worker, "notes", replace(CAPABILITIES, admission_window_s=3600.0))
    row = sender.operation(sender.enqueue_one())
    assert row.deadline - row.created_at == pytest.approx(timedelta(hours=1), abs=timedelta(seconds=5))


def test_a_second_enqueue_with_a_later_deadline_is_the_same_operation(sender: Sender) -> None:
    """The deadline is not in the hash; the first one stays."""
    id = sender.enqueue_one(deadline=timedelta(hours=1))
    deadline = sender.operation(id).deadline
    (again,) = sender.enqueue(write(deadline=timedelta(hours=2)))
    assert (again.id, again.created) == (id, False)
    assert sender.operation(id).deadline == deadline


def test_an_operation_may_supersede_another_of_its_party(sender: Sender) -> None:
    id = sender.enqueue_one()
    (later,) = sender.enqueue(write("note-7b", supersedes=id))
    assert sender.operation(later.id).supersedes == id
    assert sender.status("note-7b").supersedes == id


def test_enqueue_needs_no_receiver_that_was_ever_seen(sender: Sender) -> None:
    """F17: neither broker, worker nor receiver need be up."""
    sender.change(
        "update oncebox.destination set capabilities = null, capabilities_seen_at = null, receiver = null", ()
    )
    sender.enqueue_one()
    assert sender.status().state is State.PENDING


def test_without_the_schema_it_says_what_to_type(empty_database: str) -> None:
    engine = sa.create_engine(
        sa.make_url(empty_database).set(drivername="postgresql+psycopg"), poolclass=sa.NullPool
    )
    with Session(engine) as session, pytest.raises(SchemaMissing, match="oncebox migrate up"):
        _save(session)
    with Session(engine) as session, pytest.raises(SchemaMissing, match="oncebox migrate up"):
        OUTBOX.status(session, "note-7")
