"""The short form of the chaos run, for CI: a minute of load, one fault of each kind, the same verdict."""

import json
import sys
from pathlib import Path

import pytest

from tests.support import processes

SECONDS = 60


@pytest.mark.timeout(280)
def test_a_minute_of_chaos_loses_doubles_and_misstates_nothing(tmp_path: Path) -> None:
    file = tmp_path / "chaos.json"
    command = [sys.executable, "-m", "tests.proof.chaos", "--seconds", str(SECONDS), "--json", file]
    ended = processes.run(command, timeout=270)
    assert ended.returncode == 0, f"{ended.stdout[-6000:]}\n{ended.stderr[-3000:]}"
    told = json.loads(file.read_text(encoding="utf-8"))
    assert (told["lost"], told["duplicates"], told["false_statements"]) == (0, 0, 0)
    assert told["operations"] > SECONDS * told["rate"] * 0.9
    assert told["statements_checked"] > told["operations"]
    assert all(met["in_flight_least"] > 0 for met in told["faults_by_kind"].values())
