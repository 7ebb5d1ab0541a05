"""The embedded PostgreSQL: durable, private, one owner at a time."""

import contextlib
import os
import re
import signal
import socket
import stat
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from oncebox_operate.embedded import EmbeddedError, EmbeddedPostgres
from oncebox_operate.embedded.postgres import IMMEDIATE
from tests.support.polling import eventually

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")


def ask(url: str, statement: LiteralString) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(statement).fetchone()
        assert row is not None
        return row[0]


def test_data_survives_a_restart_in_a_folder_with_an_awkward_name(data: Path) -> None:
    """What was committed is there after a stop and a start, at the same address."""
    keeps_what_was_committed(data)


@AS_ROOT
def test_root_without_user_namespaces_runs_it_as_another_user(shared_folder: Path) -> None:
    """The folder that we create belongs to that user; the one above it stays as it was."""
    before = shared_folder.stat()
    keeps_what_was_committed(shared_folder / "data", user_namespaces=False)
    assert (shared_folder / "data").stat().st_uid != 0
    assert shared_folder.stat().st_uid == before.st_uid
    assert shared_folder.stat().st_mode == before.st_mode


@AS_ROOT
def test_a_folder_that_the_other_user_may_not_enter_is_named(shared_folder: Path) -> None:
    closed = shared_folder / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(EmbeddedError, match=f"may not enter {re.escape(str(closed))}, which is on the way"):
        EmbeddedPostgres(closed / "data", user_namespaces=False).start()


@AS_ROOT
def test_root_with_user_namespaces_changes_no_owner(data: Path) -> None:
    with EmbeddedPostgres(data):
        assert {path.stat().st_uid for path in data.rglob("*")} == {0}


def keeps_what_was_committed(data: Path, *, user_namespaces: bool = True) -> None:
    with EmbeddedPostgres(data, user_namespaces=user_namespaces) as server:
        url = server.ensure_database("oncebox")
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS id")
    with EmbeddedPostgres(data, user_namespaces=user_namespaces) as server:
        assert server.url("oncebox") == url
        assert ask(url, "SELECT id FROM kept") == 7
        assert ask(server.socket_url("oncebox"), "SELECT id FROM kept") == 7


def test_it_is_version_18_with_checksums_and_nothing_that_risks_a_commit(data: Path) -> None:
    """Checksums are on, and so are fsync, full_page_writes and synchronous_commit, even if somebody turned
    them off in the cluster's own configuration."""
    with EmbeddedPostgres(data) as server, psycopg.connect(server.url(), autocommit=True) as connection:
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")  # pyright: ignore[reportArgumentType]
    with EmbeddedPostgres(data) as server:
        assert str(ask(server.url(), "SHOW server_version")).startswith("18.")
        for setting in ("data_checksums", "fsync", "full_page_writes", "synchronous_commit"):
            assert ask(server.url(), f"SHOW {setting}") == "on", setting


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes", "synchronous_commit"])
def test_a_caller_cannot_weaken_durability(data: Path, setting: str) -> None:
    with pytest.raises(EmbeddedError, match=rf"{setting}: always on"):
        EmbeddedPostgres(data, settings={setting: "off"})


def test_only_who_can_read_the_folder_gets_in(data: Path) -> None:
    """Loopback only, with a password that only the folder's owner can read; a wrong one is refused."""
    with EmbeddedPostgres(data) as server:
        assert ask(server.url(), "SHOW listen_addresses") == "127.0.0.1"
        password = data / "password"
        assert stat.S_IMODE(password.stat().st_mode) == 0o600
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        for url in (server.url(), server.socket_url()):
            wrong = url.replace(password.read_text(encoding="ascii"), "wrong")
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                psycopg.connect(wrong)


def test_a_folder_that_was_there_keeps_its_owner_and_mode(data: Path) -> None:
    """What we did not create, we do not change."""
    data.mkdir(parents=True)
    data.chmod(0o755)
    before = data.stat()
    with EmbeddedPostgres(data):
        after = data.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_a_second_start_names_the_process_that_holds_the_data(data: Path) -> None:
    with (
        EmbeddedPostgres(data),
        pytest.raises(EmbeddedError, match=f"in use by process {os.getpid()}: end that"),
    ):
        EmbeddedPostgres(data).start()
    with EmbeddedPostgres(data) as server:
        assert server.exit_status() is None


def test_a_failed_start_shows_the_end_of_its_log_and_where_it_is(data: Path) -> None:
    with EmbeddedPostgres(data):
        pass
    with (
        pytest.raises(EmbeddedError) as failed,
        EmbeddedPostgres(data, settings={"shared_buffers": "plenty"}),
    ):
        pass
    assert str(data / "postgresql.log") in str(failed.value)
    assert 'invalid value for parameter "shared_buffers": "plenty"' in str(failed.value)
    # The lines of the run before are not this failure's.
    assert "ready to accept connections" not in str(failed.value)
    with EmbeddedPostgres(data) as server:
        assert server.exit_status() is None


def test_a_taken_port_is_named(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EmbeddedError, match=rf"port {port} on 127\.0\.0\.1 is taken"):
            EmbeddedPostgres(data, port=port).start()


def test_the_last_port_taken_by_somebody_else_is_given_up(data: Path) -> None:
    with EmbeddedPostgres(data) as server:
        port = server.port
    with socket.create_server(("127.0.0.1", port)), EmbeddedPostgres(data) as server:
        assert server.port != port


def test_a_data_folder_that_cannot_be_made_is_an_error_to_act_on(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EmbeddedError, match=r"cannot be kept in .*file.*choose a folder"):
        EmbeddedPostgres(tmp_path / "file" / "data").start()


def test_half_a_cluster_of_a_killed_start_is_made_again(data: Path) -> None:
    (data / "cluster.new").mkdir(parents=True)
    (data / "cluster.new" / "PG_VERSION").write_text("18\n", encoding="ascii")
    with EmbeddedPostgres(data) as server:
        assert ask(server.url(), "SELECT 1") == 1


def test_a_process_id_left_by_a_crash_does_not_prevent_a_start(data: Path) -> None:
    """In a container the old process id nearly always belongs to somebody else by now."""
    with EmbeddedPostgres(data):
        pass
    (data / "cluster" / "postmaster.pid").write_text(f"{os.getppid()}\n{data}\n", encoding="utf-8")
    with EmbeddedPostgres(data) as server:
        assert ask(server.url(), "SELECT 1") == 1


def test_a_server_that_ends_by_itself_is_noticed(data: Path) -> None:
    with EmbeddedPostgres(data) as server:
        assert server.exit_status() is None
        os.kill(server.pid, signal.SIGQUIT)
        status = eventually(lambda: server.exit_status() is not None and [server.exit_status()])
        assert status
        assert "immediate shutdown request" in str(server.failure("PostgreSQL ended"))


def test_an_immediate_stop_is_a_crash_that_loses_nothing(data: Path) -> None:
    server = EmbeddedPostgres(data)
    server.start()
    with psycopg.connect(server.url()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS id")
    server.stop(IMMEDIATE)
    with EmbeddedPostgres(data) as server:
        assert "not properly shut down" in server.log.read_text(encoding="utf-8")
        assert ask(server.url(), "SELECT id FROM kept") == 7


def test_nothing_is_known_of_a_server_that_is_not_started(data: Path) -> None:
    server = EmbeddedPostgres(data)
    with pytest.raises(EmbeddedError, match=re.escape(f"PostgreSQL on {data} is not started")):
        server.url()
    server.stop()
    assert not data.exists()


def test_a_stop_leaves_no_socket_folder_and_no_process(data: Path) -> None:
    with EmbeddedPostgres(data) as server:
        pid = server.pid
        sockets = Path(psycopg.conninfo.conninfo_to_dict(server.socket_url())["host"])  # pyright: ignore
        assert list(sockets.iterdir())
    assert not sockets.exists()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        pytest.fail(f"process {pid} is still there")
