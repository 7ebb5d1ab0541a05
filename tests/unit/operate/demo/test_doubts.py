"""A demonstration is believed only when everything was as promised, and each doubt is said in words."""

from dataclasses import replace

import pytest

from oncebox_operate.demo.proof import Proof
from oncebox_operate.demo.script import FaultKind, Script
from oncebox_operate.demo.strikes import Struck

SCRIPT = Script()
GOOD = Proof(
    operations=300,
    rolled_back=30,
    saved=300,
    open=0,
    unknown=0,
    needs_review=0,
    notes=300,
    duplicates=0,
    lost=0,
    left_behind=0,
    replays=3,
    reconciled=40,
    attempts=340,
    faults={
        FaultKind.LOST_REPLIES: Struck(12, 10),
        FaultKind.SLOW_REPLIES: Struck(1, 1),
        FaultKind.KILLED_WORKERS: Struck(2, 2),
        FaultKind.RESTARTED_NOTES: Struck(1, 1),
        FaultKind.RESTARTED_BROKER: Struck(1, 1),
    },
    problems=(),
    seconds=42.04,
)


def struck(kind: FaultKind, count: int, in_flight: int) -> Proof:
    return replace(GOOD, faults={**GOOD.faults, kind: Struck(count, in_flight)})


def test_what_is_as_promised_is_ok() -> None:
    assert GOOD.doubts(SCRIPT) == []
    assert GOOD.shape(SCRIPT)["ok"] is True


@pytest.mark.parametrize(
    ("proof", "doubt"),
    [
        (replace(GOOD, operations=299, saved=299, notes=299), "299 operations were committed"),
        (replace(GOOD, saved=299, notes=299, open=1), "1 operations are still open"),
        (replace(GOOD, saved=299, notes=299, needs_review=1), "need a person's review"),
        (replace(GOOD, notes=301, duplicates=1), "1 notes are there twice"),
        (replace(GOOD, notes=299, lost=1), "1 notes are lost"),
        (replace(GOOD, left_behind=1), "traces are left"),
        (replace(GOOD, rolled_back=19), "only 19 transactions were rolled back, not 20"),
        (replace(GOOD, reconciled=9), "only 9 operations of unknown outcome"),
        (replace(GOOD, problems=("finding-007: another text",)), "finding-007: another text"),
        (struck(FaultKind.LOST_REPLIES, 12, 9), "lost replies struck operations in flight 9 times, not 10"),
        (struck(FaultKind.KILLED_WORKERS, 3, 1), "killed workers struck operations in flight 1 times, not 2"),
        (struck(FaultKind.SLOW_REPLIES, 4, 0), "slow replies struck operations in flight 0 times"),
        (
            struck(FaultKind.RESTARTED_NOTES, 0, 0),
            "note service restarts struck operations in flight 0 times",
        ),
        (struck(FaultKind.RESTARTED_BROKER, 1, 0), "broker restarts struck operations in flight 0 times"),
    ],
)
def test_what_is_off_is_said_and_is_not_ok(proof: Proof, doubt: str) -> None:
    assert any(doubt in said for said in proof.doubts(SCRIPT)), proof.doubts(SCRIPT)
    assert proof.shape(SCRIPT)["ok"] is False


def test_a_small_demonstration_needs_each_fault_once_only() -> None:
    small = replace(GOOD, operations=20, saved=20, notes=20, rolled_back=2, reconciled=1)
    once = replace(small, faults=dict.fromkeys(GOOD.faults, Struck(1, 1)))

    assert once.doubts(Script(ops=20)) == []
