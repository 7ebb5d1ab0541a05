"""Where an installation goes when nothing, or little, is said about it."""

import os
from pathlib import Path

import pytest

from oncebox_operate.database_failures import Server
from oncebox_operate.embedded.errors import FolderInUse
from oncebox_operate.failures import Failure
from oncebox_operate.up import brokers, databases
from oncebox_operate.up.folder import InstallationFolder, default_place
from oncebox_operate.up.state_file import forget


@pytest.mark.parametrize(
    ("given", "sender", "notes"),
    [
        ("postgresql://u@h", "oncebox", "oncebox_notes"),
        ("postgresql://u@h/postgres", "oncebox", "oncebox_notes"),
        ("postgresql://u@h/template1", "oncebox", "oncebox_notes"),
        ("postgresql://u@h/mine", "mine", "mine_notes"),
    ],
)
def test_a_given_server_gets_a_database_for_each_party(given: str, sender: str, notes: str) -> None:
    """A server's own database is never filled with ours."""
    found = databases.beside(Server.parse(given, "ONCEBOX_DATABASE_URL"))

    assert (found.sender.url.database, found.notes.url.database) == (sender, notes)


def test_the_data_goes_into_the_working_folder(tmp_path: Path) -> None:
    """Not into one further up: a stray `.oncebox` would take in everything below it."""
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / ".oncebox").mkdir()

    assert default_place(below, {"HOME": "/home/me"}) == below / ".oncebox"


def test_where_a_folder_cannot_be_made_it_goes_into_the_users_state(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"

    assert default_place(nowhere, {"HOME": "/home/me"}) == Path("/home/me/.local/state/oncebox/data")


def test_an_installation_folder_is_ours_alone_and_stays_out_of_commits(tmp_path: Path) -> None:
    path = tmp_path / "Ordner mit ß"
    folder = InstallationFolder(path)
    with pytest.raises(FolderInUse, match=f"in use by process {os.getpid()}"):
        InstallationFolder(path)
    assert (path / ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert path.stat().st_mode & 0o066 == 0

    prefix = folder.queue_prefix()
    folder.keep_token("secret")
    folder.close()
    again = InstallationFolder(path)
    assert (again.queue_prefix(), again.token()) == (prefix, "secret")
    assert (path / "worker-token").stat().st_mode & 0o777 == 0o600
    again.close()


def test_what_the_last_run_said_of_itself_is_forgotten_when_the_next_begins(tmp_path: Path) -> None:
    (tmp_path / "up.json").write_text("{}")
    InstallationFolder(tmp_path).close()

    assert not (tmp_path / "up.json").exists()
    forget(tmp_path)


@pytest.mark.parametrize("url", ["http://h", "sqs://", "localhost:5672", ""])
def test_what_is_no_brokers_url_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(Failure, match="must be one of amqp, amqps, redis, rediss"):
        brokers.checked_url(url)


def test_a_brokers_password_is_not_shown() -> None:
    assert brokers.shown("amqp://me:secret@h:5672/v") == "amqp://h:5672/v"
