"""Where a command finds the `up` that runs: nearest first, the living told from the dead, and nothing readable by others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from oncebox_operate.up import state_file
from oncebox_operate.up.state_file import EndedUp, Places, RunningUp

PLACES = Places(
    notes_url="http://127.0.0.1:8320",
    database_url="postgresql://postgres:secret@127.0.0.1:1/oncebox",
    notes_database_url="postgresql://postgres:secret@127.0.0.1:1/notes",
    broker_url="redis://:secret@127.0.0.1:2/0",
    queue_prefix="oncebox-1",
    token="oncebox_secret",
    tenant="demo",
    principal="researcher",
    folder="drafts",
    data="/data",
)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A working folder with an `up` of this very process in it."""
    folder = tmp_path / "a folder ü"
    (folder / ".oncebox").mkdir(parents=True)
    state_file.write(folder / ".oncebox", PLACES, tmp_path / "state")
    return folder


def test_a_running_up_is_found_from_its_folder_and_from_below(here: Path) -> None:
    below = here / "deep" / "down"
    below.mkdir(parents=True)

    for start in (here, below):
        assert state_file.find(start, {}) == RunningUp(os.getpid(), PLACES)


def test_from_elsewhere_the_one_that_this_user_started_last_is_found(here: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    assert state_file.find(elsewhere, {"XDG_STATE_HOME": str(tmp_path / "nothing")}) is None
    pointed = tmp_path / "home" / "oncebox"
    state_file.write(here / ".oncebox", PLACES, pointed)
    assert state_file.find(elsewhere, {"XDG_STATE_HOME": str(pointed.parent)}) == RunningUp(
        os.getpid(), PLACES
    )


def test_the_nearest_folder_wins_over_the_users_last_even_when_its_up_has_ended(
    here: Path, tmp_path: Path
) -> None:
    """Another project's operations must not be shown as this one's."""
    other = tmp_path / "other"
    (other / ".oncebox").mkdir(parents=True)
    state_file.write(other / ".oncebox", PLACES, tmp_path / "oncebox")
    pid = leave_a_dead_one(here / ".oncebox")

    found = state_file.find(here, {"XDG_STATE_HOME": str(tmp_path)})

    assert found == EndedUp(pid, here / ".oncebox")


def test_a_process_id_that_somebody_else_has_by_now_is_not_taken_for_it(here: Path) -> None:
    file = here / ".oncebox" / "up.json"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(f'"pid": {os.getpid()}', '"pid": 1'), encoding="utf-8")

    assert state_file.find(here, {}) == EndedUp(1, here / ".oncebox")


def test_the_data_folder_that_a_variable_names_wins(here: Path, tmp_path: Path) -> None:
    named = tmp_path / "named"
    named.mkdir()
    state_file.write(named, PLACES, None)

    found = state_file.find(here, {"ONCEBOX_DATA": str(named)})

    assert isinstance(found, RunningUp)
    assert state_file.data_folder(here, {"ONCEBOX_DATA": str(named)}) == named


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "started": 2, "places": {"a": "b"}}']
)
def test_what_another_version_wrote_says_nothing(here: Path, text: str) -> None:
    (here / ".oncebox" / "up.json").write_text(text, encoding="utf-8")

    assert state_file.find(here, {}) is None


def test_nobody_else_may_read_it(here: Path, tmp_path: Path) -> None:
    for file in (here / ".oncebox" / "up.json", tmp_path / "state" / "up-data"):
        assert file.stat().st_mode & 0o777 == 0o600
    assert "secret" not in (tmp_path / "state" / "up-data").read_text(encoding="utf-8")


def test_a_users_folder_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    state_file.write(tmp_path, PLACES, tmp_path / "file" / "oncebox")

    assert isinstance(state_file.find(tmp_path, {"ONCEBOX_DATA": str(tmp_path)}), RunningUp)


def leave_a_dead_one(data: Path) -> int:
    """A process writes its state there and ends; its process id."""
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom oncebox_operate.up import state_file\n"
        f"state_file.write(Path(sys.argv[1]), state_file.Places(*{('x',) * 10!r}), None)\nprint(os.getpid())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(data)], capture_output=True, text=True, check=True)
    return int(done.stdout)
