"""The count at the end finds what it is there to find: a second note, a missing one, a trace of what was rolled back."""

import os
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest
from rich.console import Console

from oncebox_operate.database_failures import Server
from oncebox_operate.demo import proof, statements
from oncebox_operate.demo.agent import Agent, ChangedMind
from oncebox_operate.demo.corpus import ResearchNote
from oncebox_operate.demo.proof import Proof
from oncebox_operate.demo.screen import DemoScreen
from oncebox_operate.demo.script import FaultKind, Script
from oncebox_operate.demo.stage import Stage
from oncebox_operate.demo.strikes import Striker
from tests.support.databases import DatabaseServer
from tests.support.polling import eventually

SCRIPT = Script(ops=3, faults=())
NOTE = ResearchNote("Finding", "Reef B recovers faster.", "plain")
KEYS = ("one", "two", "three")


@pytest.fixture(scope="module")
def stage(
    database_server: DatabaseServer, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Stage, None, None]:
    """An open stage with three saved notes, and one that was rolled back."""
    folder: Path = tmp_path_factory.mktemp("stage")
    with (
        pytest.MonkeyPatch.context() as patch,
        (folder / "screen.txt").open("w", encoding="utf-8") as output,
    ):
        patch.setattr("tempfile.tempdir", str(folder))
        stage = Stage(
            workers=1,
            database=Server.parse(database_server.url, "ONCEBOX_DATABASE_URL"),
            broker_url=None,
            environment=os.environ,
            reporter=DemoScreen(Console(file=output), SCRIPT),
        )
        with stage:
            with stage.engine.connect() as connection:
                connection.execute(statements.FINDINGS)
            agent = Agent(stage, SCRIPT, [NOTE])
            for key in KEYS:
                agent.keep(key, NOTE)
            with pytest.raises(ChangedMind):
                agent.keep("gone", NOTE, change_mind=True)
            for key in KEYS:
                assert stage.outbox.wait(stage.engine, key, timeout=30).state == "saved"
            yield stage


@pytest.fixture
def receiver(stage: Stage) -> Generator["psycopg.Connection[tuple[object, ...]]", None, None]:
    """Changes the receiver's tables behind everybody's back; what it did is undone afterwards."""
    with psycopg.connect(stage.places.notes_database_url, autocommit=True) as connection:
        for table in ("note", "note_version"):
            connection.execute(f"CREATE TABLE kept_{table} AS TABLE {table}")  # pyright: ignore[reportArgumentType, reportCallIssue] constant names
        yield connection
        for table in ("note_version", "note"):
            connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")  # pyright: ignore[reportArgumentType, reportCallIssue] constant names
            connection.execute(f"DELETE FROM {table}")  # pyright: ignore[reportArgumentType, reportCallIssue] constant names
        for table in ("note", "note_version"):
            connection.execute(f"INSERT INTO {table} SELECT * FROM kept_{table}")  # pyright: ignore[reportArgumentType, reportCallIssue] constant names
            connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER ALL")  # pyright: ignore[reportArgumentType, reportCallIssue] constant names
            connection.execute(f"DROP TABLE kept_{table}")  # pyright: ignore[reportArgumentType, reportCallIssue] constant names


def counted(stage: Stage) -> Proof:
    return proof.collect(stage, ["gone"], {}, 1.0)


def test_three_saved_notes_are_three_notes(stage: Stage) -> None:
    found = counted(stage)

    assert (found.operations, found.saved, found.notes) == (3, 3, 3)
    assert (found.duplicates, found.lost, found.left_behind, found.attempts) == (0, 0, 0, 3)
    assert found.doubts(SCRIPT) == []


def test_a_note_under_a_key_that_nobody_chose_is_a_duplicate(
    stage: Stage, receiver: "psycopg.Connection[tuple[object, ...]]"
) -> None:
    rewrite(receiver, "UPDATE note_version SET operation_key = 'twin' WHERE operation_key = 'two'")

    found = counted(stage)

    assert (found.notes, found.duplicates, found.lost) == (3, 1, 1)


def test_a_note_that_is_gone_is_lost(
    stage: Stage, receiver: "psycopg.Connection[tuple[object, ...]]"
) -> None:
    rewrite(receiver, "DELETE FROM note_version WHERE operation_key = 'two'")

    found = counted(stage)

    assert (found.notes, found.duplicates, found.lost) == (2, 0, 1)
    assert any("two" in doubt for doubt in found.doubts(SCRIPT))


def test_a_note_of_what_was_rolled_back_is_a_trace(
    stage: Stage, receiver: "psycopg.Connection[tuple[object, ...]]"
) -> None:
    rewrite(receiver, "UPDATE note_version SET operation_key = 'gone' WHERE operation_key = 'two'")

    assert counted(stage).left_behind == 1


def test_a_fault_with_nothing_to_strike_strikes_nothing_and_is_a_doubt(stage: Stage) -> None:
    """No operation is under way any more: a rule that waits for one meets none."""
    script = Script(ops=3, rate=100, faults=(FaultKind.LOST_REPLIES,))
    striker = Striker(stage, script, lambda _: None)
    striker.start()
    eventually(lambda: striker.done)
    found = proof.collect(stage, [], striker.struck(), 1.0)
    striker.stop()

    assert found.doubts(script) == ["lost replies struck operations in flight 0 times, not 1"]


def rewrite(receiver: "psycopg.Connection[tuple[object, ...]]", statement: str) -> None:
    """One change that no constraint of the receiver would let through."""
    receiver.execute("ALTER TABLE note_version DISABLE TRIGGER ALL")
    receiver.execute(statement)  # pyright: ignore[reportArgumentType, reportCallIssue] statements of this test
    receiver.execute("ALTER TABLE note_version ENABLE TRIGGER ALL")
