"""What is recorded is read back as it was, from any number of processes, and a kill costs at most the last line."""

import os
import sys
from pathlib import Path

import pytest

from tests.proof.history import recorder, story
from tests.proof.history.recorder import Recorder
from tests.proof.history.statements import NoAnswer
from tests.support.processes import Processes

# Records until it is killed.
BUSY = """
import itertools, sys
from pathlib import Path
from tests.proof.history.recorder import Recorder
from tests.proof.history.story import SAVED, state
from oncebox_models.states import State
with Recorder(Path(sys.argv[1])) as recorder:
    for number in itertools.count():
        recorder.record(sys.argv[2], float(number), number + 0.5, state(SAVED, State.UNKNOWN))
        if number == 200:
            print("busy", flush=True)
"""


def test_every_kind_of_statement_is_read_back_as_it_was(tmp_path: Path) -> None:
    told, _ = story.honest()
    with Recorder(tmp_path) as first, Recorder(tmp_path) as second:
        for number, said in enumerate(told):
            (first, second)[number % 2].record(said.who, said.asked_at, said.answered_at, said.body)

    assert sorted(recorder.read(tmp_path), key=repr) == sorted(told, key=repr)


def test_times_keep_their_microseconds(tmp_path: Path) -> None:
    with Recorder(tmp_path) as one:
        one.record("somebody", 1_900_000_000.123456, 1_900_000_000.123457, NoAnswer("status", "timeout"))

    (said,) = recorder.read(tmp_path)

    assert (said.asked_at, said.answered_at) == (1_900_000_000.123456, 1_900_000_000.123457)


def test_processes_that_are_killed_leave_whole_statements(tmp_path: Path, processes: Processes) -> None:
    folder = tmp_path / "statements"
    folder.mkdir()
    started = [processes.start(name, [sys.executable, "-c", BUSY, folder, name]) for name in ("a", "b")]
    for process in started:
        process.wait_for_log("busy")
        process.kill()
    _tear_the_last_line(next(folder.iterdir()))

    said = list(recorder.read(folder))

    for name in ("a", "b"):
        times = [one.asked_at for one in said if one.who == name]
        assert len(times) > 190
        assert times == [float(number) for number in range(len(times))]


def test_a_line_of_somebody_else_is_an_error(tmp_path: Path) -> None:
    """A statement that cannot be read must not be left out in silence."""
    (tmp_path / "1-a.jsonl").write_text('{"who": "somebody", "asked_at": 1.0}\n', encoding="utf-8")

    with pytest.raises(ValueError, match="answered_at"):
        list(recorder.read(tmp_path))


def _tear_the_last_line(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 7)
