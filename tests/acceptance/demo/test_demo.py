"""`oncebox demo` as a person runs it: small, but with everything that a large one has."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.support import processes

ONCEBOX: Final = [sys.executable, "-m", "oncebox_operate.main"]
KEYS: Final = {
    "operations",
    "rolled_back",
    "saved",
    "notes",
    "duplicates",
    "lost",
    "unknown",
    "needs_review",
    "replays",
    "reconciled",
    "attempts",
    "faults",
    "seconds",
    "ok",
}


def demo(
    folder: Path, *arguments: str, ends_with: int = 0, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run it with its temporary files in `folder`."""
    done = processes.run(
        [*ONCEBOX, "demo", *arguments], env={"TMPDIR": str(folder), **variables}, cwd=folder, timeout=110
    )
    assert done.returncode == ends_with, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def told(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    (line,) = done.stdout.splitlines()
    return json.loads(line)


def test_everything_breaks_and_every_operation_ends_with_one_note(tmp_path: Path) -> None:
    done = demo(tmp_path, "--ops", "80", "--seed", "1", "--json")

    end = told(done)
    assert end["ok"] is True, end
    assert set(end) >= KEYS
    assert (end["operations"], end["saved"], end["notes"]) == (80, 80, 80)
    assert (end["duplicates"], end["lost"], end["unknown"], end["needs_review"]) == (0, 0, 0, 0)
    assert end["rolled_back"] == 8
    assert end["reconciled"] >= 2
    assert end["attempts"] >= 80
    assert set(end["faults"]) == {
        "lost_replies",
        "slow_replies",
        "killed_workers",
        "restarted_notes",
        "restarted_broker",
    }
    assert all(1 <= fault["in_flight"] <= fault["count"] for fault in end["faults"].values())
    assert list(tmp_path.iterdir()) == [], "nothing is left of it"


def test_it_opens_with_the_story_of_note_7_and_ends_with_a_table(tmp_path: Path) -> None:
    """The second line is what Oncebox says in the moment between the loss and the question."""
    done = demo(tmp_path, "--ops", "10", "--faults", "lost-replies,repeated_requests")

    first, second, third, *rest = done.stdout.splitlines()
    assert first.startswith("1. The note service saved note-7, and its answer got lost")
    assert second.startswith("2. OUTCOME UNKNOWN: note-7 may or may not be saved")
    assert third.startswith("3. Saved: note-7 is note ")
    assert third.endswith("Notes there under this key: 1.")
    assert any(line.split()[:2] == ["notes", "10"] for line in rest)
    assert rest[-1].startswith("Every operation ended with exactly one note")


def test_on_given_servers_it_leaves_nothing_behind(
    tmp_path: Path, postgres_url: str, rabbitmq_url: str
) -> None:
    """A broker of ours is killed; one of somebody else's has its connections cut."""
    given = ("--database-url", postgres_url, "--broker", rabbitmq_url)
    done = demo(tmp_path, "--ops", "20", "--faults", "restarted_broker,slow_replies", "--json", *given)

    end = told(done)
    assert end["ok"] is True, end
    assert end["faults"]["restarted_broker"]["in_flight"] >= 1
    assert "every connection cut" in done.stderr
    with psycopg.connect(postgres_url) as connection:
        left = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'oncebox_demo_%'")
        assert left.fetchall() == []
    assert list(tmp_path.iterdir()) == []


def test_the_three_boundaries_are_played_one_line_each(tmp_path: Path) -> None:
    done = demo(tmp_path, "--exercise", "--json")

    end = told(done)
    assert end["ok"] is True, end
    before, after, many = end["boundaries"]
    assert before["broken"] == "the note service was killed before its commit"
    assert before["seen"] == "0 notes while nobody knew, and 1 note in the end"
    assert after["seen"] == "1 note while nobody knew, and 1 note in the end"
    assert many["seen"].startswith("1 executed, ")
    for boundary in (before, after):
        assert "OUTCOME UNKNOWN" in boundary["said"]
    for boundary in end["boundaries"]:
        assert boundary["said"].endswith("Saved.")
        assert boundary["notes"] == 1
    lines = [line for line in done.stderr.splitlines() if line[:2] in ("1.", "2.", "3.")]
    assert len(lines) == 3
    assert all("Broken: " in line and "Seen: " in line and "Said: " in line for line in lines)


def test_what_cannot_be_played_is_a_mistake_with_a_way_out(tmp_path: Path) -> None:
    for arguments, said in (
        (("--faults", "earthquake"), "there are: lost_replies"),
        (("--ops", "1"), "must be from 2"),
        (("--rate", "0"), "must be from 0.1"),
        (("--broker", "amqps://127.0.0.1:5671"), "its connections are encrypted"),
    ):
        assert said in demo(tmp_path, *arguments, ends_with=2).stderr
    assert list(tmp_path.iterdir()) == []
