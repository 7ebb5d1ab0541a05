"""`oncebox config`, `env` and `completion`: what people and shells are told of this installation."""

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from oncebox_operate.up import state_file
from oncebox_operate.up.state_file import Places
from tests.integration.operate.conftest import Oncebox, Ran

Change = Callable[[str, str | None], None]
PLACES = Places(
    "http://127.0.0.1:4", "postgresql://me:secret@h/oncebox", "postgresql://h/notes", "redis://:secret@h", "q",
    "oncebox_secret", "demo", "researcher", "drafts", "/data",
)  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a home in which no `up` was ever started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)


def by_name(ran: Ran) -> dict[str, tuple[str | None, str]]:
    assert ran.code == 0
    return {line["variable"]: (line["value"], line["origin"]) for line in ran.lines}


def test_each_setting_has_its_value_origin_default_and_unit(oncebox: Oncebox, environment: Change) -> None:
    environment("ONCEBOX_LEASE_S", "60")
    environment("ONCEBOX_DATABASE_URL", "postgresql://me:hunter2@h/d")
    environment("ONCEBOX_TOKEN", "oncebox_hunter2")
    ran = oncebox("config", "--notes-url", "http://h:1", "--json")
    told = by_name(ran)
    assert told["ONCEBOX_LEASE_S"] == ("60", "variable")
    assert told["ONCEBOX_CHUNK"] == ("100", "default")
    assert told["ONCEBOX_NOTES_URL"] == ("http://h:1", "option")
    assert told["ONCEBOX_BROKER_URL"] == (None, "unset")
    assert told["ONCEBOX_DATABASE_URL"] == ("postgresql://me:***@h/d", "variable")
    assert told["ONCEBOX_TOKEN"] == ("set", "variable")
    (lease,) = (line for line in ran.lines if line["variable"] == "ONCEBOX_LEASE_S")
    assert (lease["default"], lease["unit"]) == ("45", "s")
    text = oncebox("config")
    assert "hunter2" not in ran.out + text.out
    assert "not set" in text.out


def test_a_misspelt_variable_is_named(oncebox: Oncebox, environment: Change) -> None:
    environment("ONCEBOX_LEASE", "60")
    environment("ONCEBOX_LIST_STATE", "saved")
    ran = oncebox("config")
    assert "ONCEBOX_LEASE is set, and nothing reads it. Did you mean ONCEBOX_LEASE_S?" in ran.err
    assert "ONCEBOX_LIST_STATE" not in ran.err, "that one belongs to an option of another command"


def test_env_is_what_a_shell_needs_to_have_the_same_settings(oncebox: Oncebox, environment: Change) -> None:
    url = "postgresql://me@h/d?options=-c%20x%3D'a b'"
    environment("ONCEBOX_DATABASE_URL", url)
    environment("ONCEBOX_TOKEN", "oncebox_secret")
    careful = oncebox("env")
    assert careful.out.splitlines() == [
        f"export ONCEBOX_DATABASE_URL={shlex.quote(url)}",
        "# ONCEBOX_TOKEN is a secret: oncebox env --show-secrets",
    ]
    assert oncebox("env", "--json").json == {
        "variables": {"ONCEBOX_DATABASE_URL": url},
        "withheld": ["ONCEBOX_TOKEN"],
    }
    script = oncebox("env", "--show-secrets").out + 'printf "%s|%s" "$ONCEBOX_DATABASE_URL" "$ONCEBOX_TOKEN"'
    done = subprocess.run(["sh", "-c", script], env={}, capture_output=True, text=True, check=True)
    assert done.stdout == f"{url}|oncebox_secret"


def test_where_nothing_is_set_env_says_where_to_look(oncebox: Oncebox) -> None:
    ran = oncebox("env")
    assert (ran.code, ran.out, "oncebox config" in ran.err) == (0, "", True)


def test_what_a_running_up_says_is_told_as_from_its_state_file(
    oncebox: Oncebox, environment: Change, tmp_path: Path
) -> None:
    (tmp_path / state_file.FOLDER).mkdir()
    state_file.write(tmp_path / state_file.FOLDER, PLACES, None)
    environment("ONCEBOX_NOTES_URL", "http://mine:1")
    told = by_name(oncebox("config", "--json"))
    assert told["ONCEBOX_DATABASE_URL"] == ("postgresql://me:***@h/oncebox", "state file")
    assert told["ONCEBOX_QUEUE_PREFIX"] == ("q", "state file")
    assert told["ONCEBOX_NOTES_URL"] == ("http://mine:1", "variable")
    assert "export ONCEBOX_TOKEN=oncebox_secret" in oncebox("env", "--show-secrets").out
    environment("ONCEBOX_DATABASE_URL", "postgresql://another/d")
    told = by_name(oncebox("config", "--json"))
    assert told["ONCEBOX_QUEUE_PREFIX"] == ("oncebox", "default"), "another installation is meant"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_knows_the_commands_and_options(oncebox: Oncebox, shell: str) -> None:
    ran = oncebox("completion", shell)
    assert ran.code == 0
    for word in ("reconcile", "supersedes", "enqueue"):
        assert word in ran.out
    assert oncebox("completion", shell, "--json").json == {"shell": shell, "script": ran.out, "path": None}


def test_a_bash_that_sources_it_completes(oncebox: Oncebox) -> None:
    script = (
        oncebox("completion", "bash").out
        + '\nCOMP_WORDS=(oncebox rec); COMP_CWORD=1; COMP_LINE="oncebox rec"; _oncebox oncebox rec oncebox; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "reconcile"


def test_it_installs_where_the_shell_looks(oncebox: Oncebox) -> None:
    ran = oncebox("completion", "fish", "--install", "--json")
    path = Path(ran.json["path"])
    assert (ran.code, path.is_relative_to(os.environ["HOME"])) == (0, True)
    assert "reconcile" in path.read_text(encoding="utf-8")
