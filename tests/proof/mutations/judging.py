"""One mutation: its tests have to fail with the fault and to pass without it."""

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from tests.proof.mutations import recording
from tests.proof.mutations.catalogue import Mutation, WrongCatalogue, function_of
from tests.proof.mutations.copies import Copy, not_loaded
from tests.proof.mutations.databases import Databases
from tests.proof.mutations.warm_python import Request, WarmPython

TEST_TIMEOUT_S: Final = 20
"""For one test. One that hangs because of the fault has seen it."""
RUN_TIMEOUT_S: Final = 150
"""For all tests of a mutation: beyond it even pytest is stuck, which shows nothing."""
_TAIL: Final = 2_000


class Verdict(StrEnum):
    """What came out."""

    LOAD_BEARING = "load-bearing"
    """Each of the tests failed with the fault, and passed without it."""
    SURVIVED = "survived"
    """A test did not see the fault: it, or the line, is of no use."""
    ERROR = "error"
    """It shows nothing: the fault was not run, or broke more than it should, or a test fails without it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A mutation's verdict. `saw`: what each test said to the fault. `why` is empty when it is load-bearing."""

    name: str
    verdict: Verdict
    why: str
    saw: Mapping[str, str]
    seconds: float


@dataclass(frozen=True, slots=True)
class Run:
    """What a plugin recorded of one run of pytest; `failure` says why there is no usable record."""

    tests: Mapping[str, Mapping[str, str]]
    failure: str = ""

    def outcomes(self, test: str) -> list[Mapping[str, str]]:
        """Of a test that is named with its variant, or of all variants of one that is named without."""
        variants = "[" not in test
        return [
            known
            for nodeid, known in self.tests.items()
            if nodeid == test or (variants and function_of(nodeid) == test)
        ]


@dataclass(frozen=True, slots=True)
class Bench:
    """Where one mutation at a time is judged."""

    copy: Copy
    python: WarmPython
    databases: Databases


def judge(mutation: Mutation, bench: Bench) -> Judged:
    """Apply, run, take back, run. The copy is as before when this returns."""
    started = time.monotonic()
    with_fault = Run({})
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        loaded = Path(folder) / "loaded"
        try:
            with bench.copy.mutated(mutation, loaded):
                with_fault = run_tests(mutation, bench, Path(folder) / "with", fault=True)
            verdict, why = _judge_fault(mutation, with_fault, loaded)
        except WrongCatalogue as error:
            verdict, why = Verdict.ERROR, str(error)
        if verdict is Verdict.LOAD_BEARING:
            without = run_tests(mutation, bench, Path(folder) / "without", fault=False)
            verdict, why = _judge_without(mutation, without)
    saw = {test: _said(with_fault, test) for test in mutation.tests}
    return Judged(mutation.name, verdict, why, saw, round(time.monotonic() - started, 1))


def _judge_fault(mutation: Mutation, run: Run, loaded: Path) -> tuple[Verdict, str]:
    if run.failure:
        return Verdict.ERROR, run.failure
    if files := not_loaded(mutation, loaded):
        return Verdict.ERROR, f"no process ran the changed {', '.join(files)}"
    for test in mutation.tests:
        outcomes = run.outcomes(test)
        if not outcomes:
            return Verdict.ERROR, f"there is no test {test}"
        for wrong in ("broken", "error"):
            if said := next((known["said"] for known in outcomes if known["outcome"] == wrong), None):
                return Verdict.ERROR, f"{test}: the fault is no single fault ({wrong}): {said}"
        if not any(known["outcome"] == "failed" for known in outcomes):
            return Verdict.SURVIVED, f"{test} does not see it"
    return Verdict.LOAD_BEARING, ""


def _judge_without(mutation: Mutation, run: Run) -> tuple[Verdict, str]:
    if run.failure:
        return Verdict.ERROR, run.failure
    for test in mutation.tests:
        outcomes = run.outcomes(test)
        if not outcomes:
            return Verdict.ERROR, f"{test} did not run without the fault"
        for known in outcomes:
            if known["outcome"] != "passed":
                return Verdict.ERROR, f"{test} without the fault: {known['outcome']}: {known['said']}"
    return Verdict.LOAD_BEARING, ""


def _said(run: Run, test: str) -> str:
    return next((known["said"] for known in run.outcomes(test) if known["outcome"] == "failed"), "")


def run_tests(mutation: Mutation, bench: Bench, folder: Path, *, fault: bool) -> Run:
    """Run the mutation's tests in the copy, with its code. `folder` is made, and holds what pytest leaves behind."""
    folder.mkdir()
    record, log = folder / "record.json", folder / "pytest.log"
    environment: dict[str, str] = {
        **bench.copy.environment(bench.databases.url),
        recording.RECORD: str(record),
        recording.PACKAGES: ",".join(bench.copy.packages),
        "TMPDIR": str(folder),
    }
    if fault:
        environment[recording.FIRST_FAILURE] = "1"
    if not mutation.migrates:
        environment[recording.TEMPLATES] = json.dumps(bench.databases.templates)
    arguments = [
        *("-q", "-p", "no:cacheprovider", "-p", recording.__name__),
        *("--timeout", str(TEST_TIMEOUT_S), "--tb", "short", *mutation.tests),
    ]
    request = Request(str(bench.copy.root), environment, arguments, str(log))
    code = bench.python.run(request, timeout_s=RUN_TIMEOUT_S)
    if code is None:
        return Run({}, f"pytest did not end within {RUN_TIMEOUT_S} s\n{_tail(log)}")
    if not record.exists():
        return Run({}, f"pytest ended with {code} and left no record\n{_tail(log)}")
    told: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    if told["strangers"]:
        return Run({}, f"not the copy's own code: {', '.join(told['strangers'])}")
    if told["broken"]:
        return Run({}, "\n".join(told["broken"]))
    if not told["tests"]:
        return Run({}, f"pytest ran no test\n{_tail(log)}")
    return Run(told["tests"])


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-_TAIL:] if log.exists() else ""
