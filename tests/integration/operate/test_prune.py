"""`oncebox prune`: counts, keeps the promise, and asks the note service to forget its sealed keys."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from oncebox_models.states import State
from tests.integration.operate.conftest import ONCEBOX, Oncebox
from tests.integration.operate.test_mistakes import in_terminal
from tests.integration.outbox.scenes import Sender, saved

Change = Callable[[str, str | None], None]


@pytest.fixture
def old(sender: Sender) -> UUID:
    """An operation that was saved two days ago."""
    id = sender.enqueue_one()
    call = sender.claim_one(id)
    sender.settle(call, saved(call))
    sender.age(id, by=timedelta(days=2))
    return id


def test_a_dry_run_counts_and_changes_nothing(oncebox: Oncebox, sender: Sender, old: UUID) -> None:
    before = sender.everything()
    ran = oncebox("prune", "--older-than", "1d", "--dry-run", "--json")
    assert (ran.code, ran.json) == (
        0,
        {"operations": 1, "calls": None, "tombstones": None, "older_than_s": 86_400.0, "dry_run": True},
    )
    assert sender.everything() == before
    assert "There is nothing to prune" in oncebox("prune", "--dry-run").out, (
        "30 days unless one says otherwise"
    )


def test_it_forgets_the_arguments_and_keeps_the_promise(oncebox: Oncebox, sender: Sender, old: UUID) -> None:
    sender.enqueue_one("open")
    ran = oncebox("prune", "--older-than", "1d", "--json")
    assert (ran.code, ran.json["operations"], ran.json["calls"]) == (0, 1, 1)
    assert sender.operation(old).arguments is None
    assert oncebox("status", "note-7").out.startswith("Saved: note-7")
    assert sender.status("open").state is State.PENDING
    again = oncebox("prune", "--older-than", "1d")
    assert (again.code, again.out) == (0, "Pruned 0 operations and 0 calls.\n")
    assert "ONCEBOX_NOTES_DATABASE_URL is not set" in again.err


def test_one_prune_at_a_time(oncebox: Oncebox, sender: Sender, old: UUID) -> None:
    """F44."""
    with psycopg.connect(sender.url, autocommit=True) as other:
        other.execute("select pg_advisory_lock(7070318)")
        ran = oncebox("prune", "--older-than", "1d", "--json")
    assert (ran.code, ran.error["kind"]) == (1, "busy")
    assert sender.operation(old).arguments is not None


def test_the_note_service_forgets_the_keys_that_no_request_can_reach(
    oncebox: Oncebox, sender: Sender, notes_database: str, environment: Change
) -> None:
    environment("ONCEBOX_NOTES_DATABASE_URL", notes_database)
    with psycopg.connect(notes_database) as connection:
        connection.execute(
            "insert into operation_record (tenant, principal, key, state, deadline, created_at)"
            " select 'demo', 'researcher', key, 'sealed', now() - age, now() - age"
            " from (values ('old', interval '30 d'), ('recent', interval '1 d')) as sealed(key, age)"
        )
    assert oncebox("prune", "--json").json["tombstones"] == 1
    with psycopg.connect(notes_database) as connection:
        assert connection.execute("select key from operation_record").fetchall() == [("recent",)]
    assert "0 sealed keys at the receiver" in oncebox("prune").out


def test_on_a_terminal_it_shows_its_progress(oncebox: Oncebox, sender: Sender, old: UUID) -> None:
    shown = in_terminal([str(ONCEBOX), "prune", "--older-than", "1d"], {"TERM": "xterm-256color"})
    assert "Pruning" in shown
    assert "Pruned 1 operations" in shown
