"""A run holds only when nothing is wrong and enough was struck."""

from datetime import UTC, datetime

from tests.proof.chaos import report
from tests.proof.chaos.kinds import FaultKind
from tests.proof.chaos.plan import Size
from tests.proof.chaos.report import Run
from tests.proof.chaos.striking import Fault
from tests.proof.chaos.verdict import Verdict

SHORT = Size(60, 60, 1)


def a_run(size: Size = SHORT, *, times: int = 1, without: FaultKind | None = None) -> Run:
    faults = [
        Fault(kind, 1.0, 2.0, in_flight=0 if kind is without else 3, how="")
        for kind in FaultKind
        for _ in range(times)
    ]
    return Run(
        size=size,
        loaded_s=size.seconds,
        started_at=datetime.now(UTC),
        seconds=90.0,
        drained_s=5.0,
        faults=faults,
        skewed={"worker-2": 600},
        restarted={"worker-1": [9]},
        versions={"RabbitMQ": "3"},
    )


def a_verdict() -> Verdict:
    return Verdict(operations=3600, committed=3600, notes=3600, states={"saved": 3600})


def test_a_run_in_which_all_was_struck_and_nothing_is_wrong_holds() -> None:
    told = report.document(a_run(), a_verdict())
    assert told["doubts"] == []
    assert told["ok"]
    assert "**holds**" in report.markdown(told)


def test_a_kind_that_struck_nothing_in_flight_does_not_count() -> None:
    told = report.document(a_run(without=FaultKind.DISK_FULL), a_verdict())
    assert not told["ok"]
    assert any(doubt.startswith("disk_full struck") for doubt in told["doubts"])
    assert "DOES NOT HOLD" in report.markdown(told)


def test_a_full_run_needs_eight_of_each_kind_and_150_in_all() -> None:
    full = Size(900, 60, 1)
    verdict = Verdict(operations=54_000, committed=54_000)
    assert report.doubts(a_run(full, times=7), verdict)
    assert report.doubts(a_run(full, times=8), verdict) == []


def test_a_load_that_was_not_kept_up_is_a_doubt() -> None:
    assert report.doubts(a_run(), Verdict(operations=2000, committed=2000))


def test_a_verdicts_doubts_are_told() -> None:
    verdict = a_verdict()
    verdict.lost = verdict.doubt("operations are lost", ["a1-000001-0"])
    told = report.document(a_run(), verdict)
    assert (told["ok"], told["lost"]) == (False, 1)
    assert "1 operations are lost: a1-000001-0" in report.markdown(told)


def test_the_machine_and_the_source_are_named() -> None:
    told = report.document(a_run(), a_verdict())
    assert told["machine"]["cores"] >= 1
    assert told["machine"]["memory_gib"] > 0
    assert told["machine"]["cpu"]
    assert told["commit"] != ""
