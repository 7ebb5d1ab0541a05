"""The service as a process of its own: its actions, its exit codes, how it starts, stops and dies."""

import json
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from oncebox_notes import administration
from oncebox_notes.__main__ import main
from tests.notes.running import Sender
from tests.support.polling import eventually
from tests.support.processes import Processes

Result = tuple[int, list[dict[str, Any]], str]
Act = Callable[..., Result]


@pytest.fixture
def act(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Act:
    """Runs one action here: exit code, the objects on stdout, and stderr."""

    def run_action(database_url: str, *arguments: str) -> Result:
        monkeypatch.setenv("ONCEBOX_NOTES_DATABASE_URL", database_url)
        try:
            code = main([*arguments])
        except SystemExit as usage:
            code = int(usage.code or 0)
        captured = capsys.readouterr()
        return code, [json.loads(line) for line in captured.out.splitlines()], captured.err

    return run_action


def test_an_operator_migrates_mints_and_grants(empty_database: str, act: Act) -> None:
    url = empty_database
    assert act(url, "migrate", "status")[0] == 8
    assert act(url, "token", "list")[0] == 1
    assert act(url, "migrate", "up")[1] == [{"revision": "0001", "head": "0001", "current": True}]
    _, (token,), _ = act(
        url, "token", "create", "--tenant", "demo", "--principal", "w", "--delegate", "--tenants", "a,b"
    )
    assert (token["delegate"], token["tenants"]) == (True, ["a", "b"])
    code, (listed,), _ = act(url, "token", "list")
    assert (code, listed["id"], "token" in listed) == (0, token["id"], False)
    assert act(url, "token", "revoke", token["id"])[1][0]["revoked_at"]
    assert act(url, "token", "revoke", "unknown")[0] == 3

    grant = ("--tenant", "demo", "--principal", "r", "--folder", "dra%66ts")
    assert [act(url, "grant", "add", *grant)[1][0]["created"] for _ in range(2)] == [True, False]
    assert act(url, "grant", "revoke", *grant)[1][0]["folder"] == "drafts"
    assert act(url, "grant", "revoke", *grant)[0] == 3
    assert act(url, "grant", "add", *grant)[1][0]["created"]
    rows = act(url, "grant", "list", "--tenant", "demo")[1]
    assert [row["revoked_at"] is None for row in rows] == [False, True]
    assert act(url, "purge")[1] == [{"purged": 0}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["token", "create", "--tenant", "a/b", "--principal", "p"], "'a/b'"),
        (["token", "create", "--tenant", "a", "--principal", "p", "--delegate"], "--tenants"),
        (["grant", "add", "--tenant", "a", "--principal", "p", "--folder", ".."], "'..'"),
        (["migrate", "sideways"], "invalid choice"),
    ],
)
def test_a_usage_error_is_exit_2_and_says_what_is_wrong(
    notes_database: str, act: Act, arguments: list[str], said: str
) -> None:
    code, rows, error = act(notes_database, *arguments)
    assert (code, rows) == (2, [])
    assert said in error
    assert "Traceback" not in error


def test_an_unreachable_database_is_exit_9(act: Act) -> None:
    for action in (["serve"], ["token", "list"], ["migrate", "up"]):
        code, _, error = act("postgresql://nobody:secret@127.0.0.1:1/none", *action)
        assert code == 9, error
        assert "secret" not in error


def test_wrong_settings_are_exit_2_and_all_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ONCEBOX_NOTES_DATABASE_URL", raising=False)
    monkeypatch.setenv("ONCEBOX_NOTES_PORT", "x")
    assert main(["purge"]) == 2
    said = capsys.readouterr().err
    assert "ONCEBOX_NOTES_DATABASE_URL" in said
    assert "ONCEBOX_NOTES_PORT" in said
    monkeypatch.setenv("ONCEBOX_NOTES_DATABASE_URL", "postgresql://")
    monkeypatch.delenv("ONCEBOX_NOTES_PORT")
    monkeypatch.setenv("ONCEBOX_NOTES_LOCK_TIMEOUT_SECONDS", "5")
    assert main(["purge"]) == 2
    assert "lower the lock timeout" in capsys.readouterr().err


def test_serving_without_tables_says_what_to_run(empty_database: str, act: Act) -> None:
    code, _, error = act(empty_database, "serve")
    assert code == 1
    assert "migrate up" in error


def start(processes: Processes, database_url: str) -> tuple[Any, str]:
    process = processes.start_python(
        "notes",
        "-m",
        "oncebox_notes",
        "serve",
        env={"ONCEBOX_NOTES_DATABASE_URL": database_url, "ONCEBOX_NOTES_PORT": "0"},
    )
    return process, process.wait_for_log(r'"event": "ready", "url": "([^"]+)"')[1]


def hold_inserts(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NEW; END $$"
        )
        connection.execute("CREATE TRIGGER hold BEFORE INSERT ON note FOR EACH ROW EXECUTE FUNCTION hold()")


def waiting(holder: psycopg.Connection[Any]) -> bool:
    query = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"
    return bool(holder.execute(query).fetchall()[0][0])


def principal(database_url: str, url: str) -> Sender:
    with psycopg.connect(database_url, autocommit=True) as connection:
        administration.add_grant(connection, "demo", "r", "drafts")
        return Sender(url, str(administration.create_token(connection, "demo", "r", [])["token"]))


def test_sigterm_answers_what_is_open_and_exits_0(notes_database: str, processes: Processes) -> None:
    hold_inserts(notes_database)
    process, url = start(processes, notes_database)
    with (
        principal(notes_database, url) as sender,
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(notes_database, autocommit=True) as holder,
    ):
        holder.execute("SELECT pg_advisory_lock(7)")
        pending = pool.submit(sender.create, "note-7")
        eventually(lambda: waiting(holder), what="the create is under way")
        process.send_signal(signal.SIGTERM)
        holder.execute("SELECT pg_advisory_unlock(7)")
        assert pending.result().status_code == 201
        sender.http.close()
    assert process.wait() == 0
    assert '"event":"request"' in process.log_text()


def test_kill_9_before_the_commit_leaves_nothing_and_the_retry_executes(
    notes_database: str, processes: Processes
) -> None:
    """R14, R22: neither a note nor an in-progress that stays; one note after the retry."""
    hold_inserts(notes_database)
    process, url = start(processes, notes_database)
    with (
        principal(notes_database, url) as sender,
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(notes_database, autocommit=True) as holder,
    ):
        holder.execute("SELECT pg_advisory_lock(7)")
        pending = pool.submit(sender.create, "note-7")
        eventually(lambda: waiting(holder), what="the create is under way")
        process.kill()
        assert pending.exception() is not None
        holder.execute("SELECT pg_advisory_unlock(7)")
        eventually(lambda: not waiting(holder), what="the orphaned session has ended")
        _, again = start(processes, notes_database)
        with Sender(again, sender.http.headers["authorization"].removeprefix("Bearer ")) as retry:
            reply = eventually(lambda: (r := retry.create("note-7")).status_code == 201 and r)
            assert reply
        assert holder.execute("SELECT count(*) FROM note").fetchall() == [(1,)]
