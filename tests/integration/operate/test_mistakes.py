"""A user's mistake is answered with a message, an exit code and what to do; never with a traceback."""

import os
import pty
import re
import subprocess
from collections.abc import Callable

import pytest

from tests.integration.operate.conftest import ONCEBOX, Oncebox
from tests.integration.outbox.scenes import Sender

Change = Callable[[str, str | None], None]


def test_without_a_database_url_the_variable_and_an_example_are_named(oncebox: Oncebox) -> None:
    for command in (
        ["list"], ["status", "note-7"], ["migrate", "up"], ["lag"], ["relay"], ["worker"], ["retry", "note-7"],
        ["cancel", "note-7"], ["reconcile"], ["doctor"], ["prune"],
    ):  # fmt: skip
        ran = oncebox(*command)
        assert ran.code == 2
        assert "export ONCEBOX_DATABASE_URL=postgresql://" in ran.err


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("postgresql://u:secret@127.0.0.1:1/y", 9, "127.0.0.1:1, database y"),
        ("postgresql://u:secret@nowhere.invalid/y", 9, "nowhere.invalid:5432"),
        ("mysql://u:secret@h/y", 2, "needs PostgreSQL"),
        ("not a url secret", 2, "is not a URL"),
    ],
)
@pytest.mark.parametrize("command", ["lag", "migrate up", "migrate status", "status note-7", "enqueue"])
def test_a_database_that_cannot_be_used_is_named_without_its_password(
    oncebox: Oncebox, environment: Change, url: str, code: int, words: str, command: str
) -> None:
    environment("ONCEBOX_DATABASE_URL", url)
    arguments = ["--operation-id=a", "--folder=f", "--title=t", "--text=x"] if command == "enqueue" else []
    ran = oncebox(*command.split(), *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
    assert "secret" not in ran.err
    assert "Traceback" not in ran.err


def test_a_database_that_does_not_exist_is_said_with_the_command_that_makes_it(
    oncebox: Oncebox, environment: Change, sender_database: str
) -> None:
    environment("ONCEBOX_DATABASE_URL", re.sub(r"/[^/]+$", "/missing_database", sender_database))
    ran = oncebox("lag")
    assert (ran.code, "createdb missing_database" in ran.err) == (9, True)


def test_a_database_without_tables_leads_to_migrate(
    oncebox: Oncebox, environment: Change, empty_database: str
) -> None:
    environment("ONCEBOX_DATABASE_URL", empty_database)
    ran = oncebox("list", "--json")
    assert (ran.code, ran.error["kind"], ran.error["hint"]) == (
        1,
        "schema_missing",
        "Create or upgrade them: oncebox migrate up",
    )


def test_a_read_only_database_is_named_as_such(oncebox: Oncebox, sender: Sender, environment: Change) -> None:
    """F51: a standby is said to be one."""
    environment("ONCEBOX_DATABASE_URL", f"{sender.url}?options=-c%20default_transaction_read_only%3Don")
    ran = oncebox("enqueue", "--operation-id=a", "--folder=f", "--title=t", "--text=x")
    assert (ran.code, "read-only" in ran.err) == (1, True)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("stauts note-7", "Did you mean status?"),
        ("migrate upp", "Did you mean up?"),
        ("list --sate saved", "Did you mean --state?"),
        ("list --state savd", 'Did you mean "saved"?'),
        ("list --limit 0", "from 1 to 10000"),
        ("list --before x", "--before"),
        ("wait note-7 --timeout soon", "1h30m"),
        ("status", "oncebox status --help"),
        ("worker --pool greenlets", "threads"),
        ("retyr note-7", "Did you mean retry?"),
        ("prune --older-than soon", "1h30m"),
        ("completion tcsh", "fish"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(oncebox: Oncebox, typed: str, words: str) -> None:
    ran = oncebox(*typed.split(), "--json")
    assert (ran.code, ran.error["exit_code"], ran.error["kind"]) == (2, 2, "usage")
    assert words in ran.err


def test_settings_of_a_role_are_told_all_at_once(oncebox: Oncebox, environment: Change) -> None:
    environment("ONCEBOX_DATABASE_URL", "postgresql://h/d")
    environment("ONCEBOX_LEASE_S", "long")
    ran = oncebox("worker", "--concurrency", "0")
    assert ran.code == 2
    for variable in ("BROKER_URL", "NOTES_URL", "TOKEN", "CONCURRENCY", "LEASE_S"):
        assert f"ONCEBOX_{variable}: " in ran.err


def test_a_traceback_is_for_developers_who_ask_for_it(oncebox: Oncebox) -> None:
    assert "Traceback" not in oncebox("list").err
    assert "Traceback" in oncebox("list", "--traceback").err


def test_help_and_version_exit_with_0(oncebox_process: Oncebox) -> None:
    assert "oncebox enqueue --operation-id note-7" in oncebox_process("enqueue", "--help").out
    assert "Say what is known of an operation." in oncebox_process().out
    version = oncebox_process("version", "--json")
    assert (version.code, set(version.json)) == (0, {"version", "python", "schema"})


def test_a_reader_that_has_enough_is_no_error(oncebox: Oncebox, sender: Sender) -> None:
    sender.enqueue_one()
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; '{ONCEBOX}' lag --watch --json | head -1"],
        capture_output=True,
        timeout=60,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("variables", "colour"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_is_for_terminals_and_no_color_is_honoured(
    oncebox: Oncebox, sender: Sender, variables: dict[str, str], colour: bool
) -> None:
    sender.enqueue_one()
    assert "\x1b[" not in oncebox("status", "note-7").out
    shown = in_terminal([str(ONCEBOX), "status", "note-7"], {"TERM": "xterm-256color", **variables})
    assert "NOT SENT YET" in shown
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-7]m", shown)) is colour


def in_terminal(argv: list[str], variables: dict[str, str]) -> str:
    """What a command prints on a terminal."""
    ours, its = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(argv, stdin=its, stdout=its, stderr=its, env=environment | variables)
    os.close(its)
    shown = b""
    try:
        # On Linux the end of a terminal is an error of the read.
        while part := os.read(ours, 65_536):
            shown += part
    except OSError:
        pass
    os.close(ours)
    assert process.wait(30) == 0
    return shown.decode()
