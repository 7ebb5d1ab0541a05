"""What a doctor sees of the sender's database."""

from uuid import UUID

import psycopg
import pytest
import sqlalchemy as sa

from oncebox_models.outcomes import Outcome
from oncebox_outbox import SchemaMissing, examining
from oncebox_outbox.engine import durability_faults, worker_engine
from oncebox_outbox.policy import Policy
from oncebox_outbox.settling import park_poison
from tests.integration.outbox.scenes import Sender
from tests.support.polling import eventually


def contents(sender: Sender) -> examining.Contents:
    with sender.agent.connect() as connection:
        return examining.contents(connection)


def age(sender: Sender, id: UUID) -> None:
    """Make it long ago that this one became due, and that its lease ran out."""
    sender.change(
        "update oncebox.outbox_entry set ready_at = now() - interval '9 min',"
        " lease_until = case when call_id is not null then now() - interval '9 min' end where id = any(:ids)",
        [id],
    )


def test_a_sound_server_with_our_tables(sender: Sender) -> None:
    with sender.worker.connect() as connection:
        seen = examining.server(connection)
        assert (seen.supported, seen.forgetful, seen.read_only, seen.asynchronous_standbys) == (
            True,
            {},
            False,
            0,
        )
        assert examining.revision(connection) == "0001"
        assert abs((examining.clock(connection) - examining.clock(connection)).total_seconds()) < 5


def test_a_connection_whose_commits_do_not_wait_is_forgetful(sender: Sender) -> None:
    with sender.agent.connect() as connection:
        connection.execute(sa.text("set synchronous_commit = off"))
        assert examining.server(connection).forgetful == {"synchronous_commit": "off"}


def test_a_read_only_server_is_a_fault_of_a_start(sender: Sender) -> None:
    """F51."""
    engine = worker_engine(sender.url, pool_size=1, application="test")
    with engine.connect() as connection:
        connection.exec_driver_sql("set default_transaction_read_only = on")
    assert ["read-only" in fault for fault in durability_faults(engine)] == [True]
    engine.dispose()


def test_without_tables_there_is_no_revision_and_nothing_to_look_at(empty_database: str) -> None:
    engine = worker_engine(empty_database, pool_size=1, application="test")
    with engine.connect() as connection:
        assert examining.revision(connection) is None
        with pytest.raises(SchemaMissing):
            examining.contents(connection)
    engine.dispose()


def test_orphans_and_those_set_aside_are_seen(sender: Sender) -> None:
    orphan, poison = sender.enqueue_one("a"), sender.enqueue_one("b")
    sender.change("delete from oncebox.outbox_entry where id = any(:ids)", [orphan])
    sender.claim_one(poison)
    sender.lapse(poison)
    park_poison(sender.worker, Policy(poison_claims=1), limit=1)
    seen = contents(sender)
    assert (seen.orphans, seen.in_review) == ((orphan,), 1)


def test_unknown_is_stuck_only_when_it_is_due_and_nobody_asks(sender: Sender) -> None:
    asked, lapsed, later, pending = (sender.enqueue_one(name) for name in "abcd")
    for id in (asked, later):
        sender.answer(sender.claim_one(id), Outcome.UNKNOWN, "timeout", retry_after_s=3600.0)
    sender.claim_one(lapsed)
    sender.lapse(lapsed)
    assert contents(sender).stuck == 0, "the one waits for its time, the other has only just lapsed"
    for id in (asked, lapsed, pending):
        age(sender, id)
    assert contents(sender).stuck == 2
    sender.claim_one(asked)
    assert contents(sender).stuck == 1, "one is being asked about"


def test_who_is_connected_now_is_seen_by_the_names_of_connections(sender: Sender) -> None:
    seen = contents(sender)
    assert (seen.relay, seen.worker) == (False, False)
    with (
        psycopg.connect(sender.url, application_name="oncebox relay wake-up"),
        psycopg.connect(sender.url, application_name="oncebox watch 12"),
    ):
        seen = contents(sender)
        assert (seen.relay, seen.worker) == (True, True)
    eventually(lambda: not contents(sender).relay, what="the server has noticed that they are gone")
