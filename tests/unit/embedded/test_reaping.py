"""However the owner of an embedded server dies, the server ends, and the data can be used again."""

import os
import signal
from pathlib import Path

import psycopg
import pytest

from oncebox_operate.embedded import EmbeddedError, EmbeddedPostgres, EmbeddedValkey
from tests.support.polling import eventually
from tests.unit.embedded.conftest import StartOwner

KINDS = pytest.mark.parametrize("kind", ["postgres", "valkey"])


def is_running(pid: int) -> bool:
    """A zombie is not: it has ended, and only waits for its parent to hear of it."""
    try:
        state = Path("/proc", str(pid), "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def starts_again(kind: str, data: Path) -> bool:
    with EmbeddedPostgres(data) if kind == "postgres" else EmbeddedValkey(data) as server:
        return server.exit_status() is None


@KINDS
def test_kill_9_of_the_owner_ends_the_server(kind: str, data: Path, start_owner: StartOwner) -> None:
    owner, server = start_owner(kind, data)
    assert is_running(server["pid"])
    owner.kill()
    eventually(lambda: not is_running(server["pid"]), what=f"the server {server} has ended")
    eventually(lambda: not is_running(server["supervisor"]), what="its supervisor has ended")
    if "sockets" in server:
        assert not Path(server["sockets"]).exists()
    assert starts_again(kind, data)


@KINDS
def test_a_start_right_after_the_kill_waits_for_the_old_server(
    kind: str, data: Path, start_owner: StartOwner
) -> None:
    """Nobody has to know how long the old server takes to stop."""
    owner, _ = start_owner(kind, data)
    owner.kill()
    assert starts_again(kind, data)


@KINDS
def test_kill_9_of_the_supervisor_ends_the_server(kind: str, data: Path, start_owner: StartOwner) -> None:
    owner, server = start_owner(kind, data)
    os.kill(server["supervisor"], signal.SIGKILL)
    eventually(lambda: not is_running(server["pid"]), what=f"the server {server} has ended")
    owner.kill()
    assert starts_again(kind, data)


@KINDS
def test_kill_9_of_owner_and_supervisor_at_once_ends_the_server(
    kind: str, data: Path, start_owner: StartOwner
) -> None:
    owner, server = start_owner(kind, data)
    os.kill(server["supervisor"], signal.SIGKILL)
    owner.kill()
    eventually(lambda: not is_running(server["pid"]), what=f"the server {server} has ended")
    assert starts_again(kind, data)
    if "sockets" in server:
        assert not Path(server["sockets"]).exists()


@KINDS
def test_a_child_that_the_owner_left_behind_keeps_no_server_alive(
    kind: str, data: Path, start_owner: StartOwner
) -> None:
    """A forked child has the owner's end of the pipe; the supervisor looks at its parent too."""
    owner, server = start_owner(kind, data, "fork")
    owner.kill()
    eventually(lambda: not is_running(server["pid"]), what=f"the server {server} has ended")
    assert is_running(server["child"])


@KINDS
def test_ctrl_c_leaves_the_server_to_its_owner(kind: str, data: Path, start_owner: StartOwner) -> None:
    """A terminal's SIGINT goes to the whole process group: the owner drains first, then stops the server."""
    owner, server = start_owner(kind, data)
    os.killpg(owner.pid, signal.SIGINT)
    assert owner.wait() == 0
    assert owner.wait_for_log("after_interrupt.*").group() == 'after_interrupt": null}'
    assert not is_running(server["pid"])


@KINDS
def test_the_holder_in_another_process_is_named(kind: str, data: Path, start_owner: StartOwner) -> None:
    owner, _ = start_owner(kind, data)
    with pytest.raises(EmbeddedError, match=f"in use by process {owner.pid}: end that process"):
        starts_again(kind, data)


@KINDS
def test_an_ordinary_user_needs_no_rights(
    kind: str, somebody: tuple[tuple[str, ...], Path], start_owner: StartOwner
) -> None:
    program, folder = somebody
    owner, server = start_owner(kind, folder / "data", program=program)
    assert (folder / "data").stat().st_uid == folder.stat().st_uid
    assert Path("/proc", str(server["pid"])).stat().st_uid == folder.stat().st_uid
    if kind == "postgres":
        with psycopg.connect(server["url"]) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    owner.kill()
    eventually(lambda: not is_running(server["pid"]), what=f"the server {server} has ended")
