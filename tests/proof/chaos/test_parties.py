"""What a run's faults rest on: clocks that are wrong, a disk that is full, a database that stands still or dies."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from oncebox_operate.faults.http_proxy import Exchange
from tests.proof.chaos.hand import operations_in
from tests.proof.chaos.parties.database import Database
from tests.proof.chaos.parties.skew import Skew
from tests.proof.chaos.parties.small_disk import SmallDisk
from tests.proof.chaos.strikes.databases import refusals_in

_CLOCKS = "import json, time; print(json.dumps([time.time(), time.monotonic()])); time.sleep(0.01)"


@pytest.mark.parametrize("seconds", [600, -600])
def test_a_skewed_process_has_a_wrong_wall_clock_and_right_durations(tmp_path: Path, seconds: int) -> None:
    environment = os.environ | Skew(tmp_path).environment(seconds)
    told = subprocess.run(
        [sys.executable, "-c", _CLOCKS], env=environment, capture_output=True, text=True, check=True
    )
    wall, monotonic = json.loads(told.stdout)
    assert wall - time.time() == pytest.approx(seconds, abs=30)
    assert monotonic == pytest.approx(time.monotonic(), abs=30)


def test_a_clock_that_is_right_needs_no_library(tmp_path: Path) -> None:
    assert Skew(tmp_path).environment(0) == {}


def test_a_small_disk_is_full_until_it_is_freed(tmp_path: Path) -> None:
    with SmallDisk.mounted(tmp_path / "disk", 8) as disk:
        if disk is None:
            assert os.geteuid() != 0, "root may mount here"
            return
        disk.fill()
        with pytest.raises(OSError, match="No space left"):
            (disk.folder / "more").write_bytes(b"x" * 100_000)
        disk.free()
        (disk.folder / "more").write_bytes(b"x" * 100_000)


def test_a_paused_database_answers_later_and_a_killed_one_after_its_restart(tmp_path: Path) -> None:
    database = Database("sender", tmp_path / "data", "oncebox")
    database.start()
    try:
        with psycopg.connect(database.url, autocommit=True) as connection:
            connection.execute("create table kept (n int)")
            connection.execute("insert into kept values (1)")
        database.pause()
        assert not database.wait_until_it_answers(0.5)
        database.resume()
        assert database.wait_until_it_answers(20)
        database.kill()
        assert database.has_ended() or not database.wait_until_it_answers(0.2)
        database.restart()
        with psycopg.connect(database.url) as connection:
            assert connection.execute("select n from kept").fetchall() == [(1,)]
    finally:
        database.stop()


def test_operations_of_a_request_are_counted() -> None:
    batch = Exchange(
        "POST", "/v1/notes:batch", {}, b'{"items": [{"operation_id": "a"}, {"operation_id": "b"}]}'
    )
    assert operations_in(batch) == 2
    assert operations_in(Exchange("GET", "/v1/capabilities", {}, b"")) == 0


def test_a_refusal_is_found_in_a_batch_and_in_an_answer_of_its_own() -> None:
    busy = {"status": 503, "code": "busy"}
    items = [{"operation_id": "a", "status": 201}, {"operation_id": "b", "status": 503, "problem": busy}]
    batch = Exchange("POST", "/v1/notes:batch", {}, b"", reply_body=json.dumps({"items": items}).encode())
    alone = Exchange("POST", "/v1/notes", {}, b"", reply_body=json.dumps(busy).encode())
    silent = Exchange("POST", "/v1/notes", {}, b"")
    assert [list(refusals_in(one)) for one in (batch, alone, silent)] == [["503 busy"], ["503 busy"], []]
