"""A small run of real processes: everybody is asked in every way while it goes on, and everything said was so."""

import itertools
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import httpx2
import psycopg
import pytest

from oncebox_models.states import State
from oncebox_operate import metrics
from oncebox_operate.embedded import EmbeddedPostgres
from oncebox_outbox import Write
from tests.acceptance.town import OUTBOX, WHY, Places, Town
from tests.proof.history import recorder
from tests.proof.history.asking import Asker
from tests.proof.history.checker import check, tally
from tests.proof.history.ledger import read_ledger
from tests.proof.history.recorder import Recorder
from tests.proof.history.statements import Key, Statement, StateSaid
from tests.proof.history.truth import Ledger
from tests.support import databases
from tests.support.processes import Processes

NAMES = [f"note-{number}" for number in range(6)]
CANCELLED, REFUSED = "note-6", "note-7"
PAUSE_S = 0.05
LAPSED = """
with lapsed as (
  insert into oncebox.call (call_id, kind, destination, worker, operations)
  values (gen_random_uuid(), 'send', 'notes', 'here:1:a', 1) returning call_id
)
insert into oncebox.call_outcome (id, call_id, outcome, reason, at)
select o.id, l.call_id, 'unknown', 'lease_lapsed', o.created_at + make_interval(secs => %(seconds)s)
from oncebox.operation o cross join lapsed l where o.operation_id = %(operation_id)s
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[EmbeddedPostgres]:
    """One that keeps commit times."""
    folder = tmp_path_factory.mktemp("server")
    with EmbeddedPostgres(folder / "postgres", settings={"track_commit_timestamp": "on"}) as started:
        yield started


class Run(NamedTuple):
    """What was said, and what was so when everything had stopped."""

    said: list[Statement]
    ledger: Ledger
    sender: str
    notes: str


@pytest.fixture(scope="module")
def run(server: EmbeddedPostgres, redis_server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("run")
    statements = folder / "statements"
    statements.mkdir()
    sender, notes = server.ensure_database("sender"), server.ensure_database("notes")
    with ThreadPoolExecutor(2) as migrations:
        list(
            migrations.map(
                lambda migrate, url: migrate(url),
                (databases.migrate_sender, databases.migrate_notes),
                (sender, notes),
            )
        )
    places = Places(sender, notes, redis_server_url, "history-", folder)
    with Recorder(statements) as recording, Town(places, Processes(folder)) as town:
        _before_anybody_runs(town, recording)
        town.open()
        _while_it_runs(town, recording)
    return Run(list(recorder.read(statements)), read_ledger(sender, notes), sender, notes)


def test_everything_that_was_said_was_so(run: Run) -> None:
    said, ledger, *_ = run

    assert check(said, ledger) == []
    # Everybody was asked in every way, and some of it at a moment when there was no answer.
    kinds = tally(said)
    assert all(
        kinds[kind] > 0
        for kind in ("absent", "cancel", "enqueue", "exit", "lag", "none", "receiver", "state")
    )
    who = {one.who for one in said if isinstance(one.body, StateSaid) and one.body.state is State.SAVED}
    assert who == {"watcher api", "watcher cli"}


def test_the_ledgers_are_read_with_their_commit_times(run: Run) -> None:
    said, ledger, *_ = run
    saved = {key for key, operation in ledger.operations.items() if operation.state is State.SAVED}

    assert {key.operation_id for key in ledger.notes} == {key.operation_id for key in saved} == set(NAMES)
    cancelled, refused = ledger.operations[_key(CANCELLED)], ledger.operations[_key(REFUSED)]
    assert (cancelled.state, cancelled.by_call) == (State.NOT_SAVED, False)
    assert (refused.state, refused.by_call) == (State.REFUSED, True)
    assert ledger.sealed.keys() == {_key(REFUSED)}
    assert refused.created_at < ledger.sealed[_key(REFUSED)] < refused.open_until
    for key in saved:
        (note,), operation = ledger.notes[key], ledger.operations[key]
        assert operation.created_at < note.committed_at < operation.open_until
        assert min(one.asked_at for one in said) < note.committed_at < max(one.answered_at for one in said)


def test_the_same_run_with_later_commits_is_full_of_lies(run: Run) -> None:
    """The judgement hangs on the commit times that were read."""
    said, ledger, *_ = run
    later = {
        key: tuple(replace(note, committed_at=note.committed_at + 3600) for note in notes)
        for key, notes in ledger.notes.items()
    }

    assert {found.rule for found in check(said, replace(ledger, notes=later))} == {"saved_before_commit"}


def test_nothing_is_asserted_of_what_may_have_been_set_aside(run: Run) -> None:
    """One that was parked for review has no entry; a receipt that comes late settles it, and covers that up."""
    key = _key(NAMES[1])
    with psycopg.connect(run.sender, autocommit=True) as connection:
        for seconds in (1, 2, 3):
            connection.execute(LAPSED, {"operation_id": key.operation_id, "seconds": seconds})

    operation = read_ledger(run.sender, run.notes).operations[key]

    assert operation.open_until == pytest.approx(operation.created_at + 2, abs=1e-6)
    assert run.ledger.operations[key].open_until != operation.open_until


def test_a_server_that_keeps_no_commit_times_is_named(postgres_url: str) -> None:
    with pytest.raises(ValueError, match="track_commit_timestamp = on"):
        read_ledger(postgres_url, postgres_url)


def _before_anybody_runs(town: Town, recording: Recorder) -> None:
    """Nobody delivers, and the receiver does not answer."""
    agent, watcher = Asker(recording, "agent api"), Asker(recording, "watcher api")
    watcher.status(town.engine, OUTBOX, NAMES[0])
    for name in [*NAMES[:3], CANCELLED]:
        agent.enqueue(town.engine, OUTBOX, _write(name), _key(name))
    agent.cancel(town.engine, OUTBOX, CANCELLED)
    with httpx2.Client(base_url=town.notes_url, timeout=1.0) as stranger:
        watcher.receiver(stranger, _key(NAMES[0]))


def _while_it_runs(town: Town, recording: Recorder) -> None:
    agent = Asker(recording, "agent api")
    over = threading.Event()
    with ThreadPoolExecutor(4) as pool:
        watching = [
            pool.submit(_watch_the_outbox, town, Asker(recording, "watcher api"), over),
            pool.submit(_watch_the_receiver, town, Asker(recording, "watcher receiver"), over),
            pool.submit(_watch_the_lag, town, Asker(recording, "watcher metrics"), over),
            pool.submit(_ask_by_command, town, Asker(recording, "watcher cli")),
        ]
        try:
            for name in [*NAMES, NAMES[0]]:
                agent.enqueue(town.engine, OUTBOX, _write(name), _key(name))
            agent.enqueue(town.engine, OUTBOX, _write(REFUSED, folder="of others"), _key(REFUSED))
            town.drain()
            watching[-1].result()
        finally:
            over.set()
        for watcher in watching:
            watcher.result()


def _watch_the_outbox(town: Town, watcher: Asker, over: threading.Event) -> None:
    for name in itertools.cycle([*NAMES, CANCELLED, REFUSED]):
        if over.wait(PAUSE_S):
            return
        watcher.status(town.engine, OUTBOX, name)


def _watch_the_receiver(town: Town, watcher: Asker, over: threading.Event) -> None:
    token = {"Authorization": f"Bearer {town.token}"}
    with httpx2.Client(base_url=town.notes_url, headers=token) as http:
        for name in itertools.cycle([*NAMES, CANCELLED, REFUSED]):
            if over.wait(PAUSE_S):
                return
            watcher.receiver(http, _key(name))


def _watch_the_lag(town: Town, watcher: Asker, over: threading.Event) -> None:
    server = metrics.serve(town.places.sender_database, "127.0.0.1", 0)
    try:
        while not over.wait(PAUSE_S):
            watcher.metrics(server.url)
    finally:
        server.close()


def _ask_by_command(town: Town, watcher: Asker) -> None:
    watcher.lag_command(town.environment)
    watcher.command("wait", _key(NAMES[0]), town.environment)
    watcher.list_command(town.environment)


def _key(name: str) -> Key:
    return Key(OUTBOX.tenant, OUTBOX.principal, name)


def _write(name: str, folder: str = "drafts") -> Write:
    return Write(WHY, {"folder": folder, "title": name, "text": "Reef B recovers faster."}, operation_id=name)
