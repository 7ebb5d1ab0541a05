"""`up` in the first terminal, and every other command in a second one, with no variable set."""

import json
from pathlib import Path

from tests.acceptance.up.running import Machine
from tests.support.processes import RunningProcess

Shared = tuple[Machine, RunningProcess]


def test_a_note_is_saved_waited_for_and_verified(shared: Shared) -> None:
    machine, _ = shared

    assert machine.saves("note-7")["state"] == "saved"
    shown = json.loads(machine.types("show", "note-7", "--json").stdout)
    assert [call["kind"] for call in shown["calls"]] == ["send"]
    verified = json.loads(machine.types("verify", "--deep", "--json").stdout)
    assert (verified["ok"], verified["read"]) == (True, verified["saved"])


def test_it_is_found_from_below_and_from_anywhere_else(shared: Shared) -> None:
    machine, _ = shared
    below = machine.folder / "below"
    below.mkdir()

    for cwd in (below, Path("/usr")):
        machine.types("lag", cwd=cwd)
        machine.types("grant", "list", cwd=cwd)


def test_a_variable_wins_and_then_nothing_of_the_running_one_is_mixed_in(shared: Shared) -> None:
    """Verifying one installation's ledger against another's notes would find everything lost."""
    machine, _ = shared
    elsewhere = "postgresql://nobody@127.0.0.1:1/nowhere"

    told = machine.types("verify", ends_with=2, ONCEBOX_DATABASE_URL=elsewhere)
    assert "ONCEBOX_NOTES_DATABASE_URL is not set" in told.stderr
    assert "is left alone, since another database is named" in told.stderr
    assert "127.0.0.1:1" in machine.types("lag", "--database-url", elsewhere, ends_with=9).stderr


def test_a_second_up_on_the_same_data_says_which_process_holds_it(shared: Shared) -> None:
    machine, running = shared

    told = machine.types("up", ends_with=1)

    assert f"in use by process {running.pid}" in told.stderr
    assert json.loads(machine.types("up", "--json", ends_with=1).stdout)["error"]["kind"] == "in_use"


def test_the_screen_says_where_things_are_and_no_secret(shared: Shared) -> None:
    machine, running = shared
    text = running.log_text()
    places = machine.state()["places"]

    assert "demo/researcher, and may write into drafts" in text
    assert places["notes_url"] in text
    assert f"{machine.data}/logs" in text
    for part in ("database", "broker", "tables", "note service", "relay", "worker 1", "worker 2"):
        assert f"✓ {part}" in text
    for place in ("database_url", "broker_url"):
        password = places[place].partition("://")[2].rpartition("@")[0].partition(":")[2]
        assert len(password) > 20
        assert password not in text
    assert places["token"] not in text


def test_it_shows_three_commands_to_type_next(shared: Shared) -> None:
    _, running = shared
    shown = [line.strip() for line in running.log_text().splitlines() if line.startswith("  oncebox ")]

    assert [line.split()[1] for line in shown] == ["enqueue", "wait", "verify"]


def test_what_it_keeps_can_be_read_by_nobody_else(shared: Shared) -> None:
    machine, _ = shared

    for name in ("up.json", "worker-token"):
        assert (machine.data / name).stat().st_mode & 0o777 == 0o600
    assert machine.data.stat().st_mode & 0o066 == 0
