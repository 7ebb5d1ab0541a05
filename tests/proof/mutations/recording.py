"""A pytest plugin inside the copy: what became of each test, and whose code was imported.

    python -m pytest -p tests.proof.mutations.recording …

It is told by two variables: where to write its record (JSON), and which tree must be the one that is imported.
"""

import importlib.util
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.databases import DatabaseServer

RECORD: Final = "MUTATION_RECORD"
PACKAGES: Final = "MUTATION_PACKAGES"
"""Names of the packages that have to come from the working directory, separated by commas."""
FIRST_FAILURE: Final = "MUTATION_FIRST_FAILURE"
"""Set: once a variant of a test has failed its other variants are left out."""
TEMPLATES: Final = "MUTATION_TEMPLATES"
"""Databases with tables, as JSON by name: made once, for all copies whose migrations are the tree's own."""

_LONGEST: Final = 600
_BROKEN: Final = (SyntaxError, ImportError, NameError)


class Recording:
    """Collects, and writes at the end. A record that is not there means that pytest did not get that far."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._tests: dict[str, dict[str, Any]] = {}
        self._broken: list[str] = []
        self._first_failure = FIRST_FAILURE in os.environ
        self._failed: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self._first_failure and _function(item.nodeid) in self._failed:
            pytest.skip("another variant has failed already")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: "pytest.CallInfo[None]") -> Iterator[None]:
        report = yield
        assert isinstance(report, pytest.TestReport)
        known = self._tests.setdefault(item.nodeid, {"outcome": "passed", "said": ""})
        if report.outcome == "failed":
            # A test that failed by itself is not undone by what its fixtures say afterwards.
            if known["outcome"] == "passed":
                known |= _failure(report, call)
            if report.when == "call":
                self._failed.add(_function(item.nodeid))
        elif report.outcome == "skipped":
            known["outcome"] = "skipped"
        return report  # pyright: ignore[reportReturnType] (what a wrapper returns goes to the caller)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._broken.append(f"{report.nodeid}: {str(report.longrepr)[-_LONGEST:]}")

    def pytest_sessionfinish(self) -> None:
        record = {"tests": self._tests, "broken": self._broken, "strangers": strangers()}
        self._file.write_text(json.dumps(record), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recording(Path(os.environ[RECORD])))
    if given := os.environ.get(TEMPLATES):
        use_templates(json.loads(given))


def use_templates(given: dict[str, str]) -> None:
    """Let the fixtures clone these databases. Migrating takes longer than most of the tests."""

    def template(self: DatabaseServer, name: str, build: Callable[[str], None]) -> str:
        assert self.url  # asking for it is what begins the session
        return given[name]

    DatabaseServer.template = template


def strangers() -> list[str]:
    """The packages of ours that are not imported from the working directory, each with where it comes from."""
    found: list[str] = []
    for name in os.environ[PACKAGES].split(","):
        spec = importlib.util.find_spec(name)
        origin = str(spec.origin) if spec is not None else "nowhere"
        if Path.cwd() not in Path(origin).parents:
            found.append(f"{name} from {origin}")
    return found


def _function(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def _failure(report: pytest.TestReport, call: "pytest.CallInfo[None]") -> dict[str, str]:
    """Whether it failed by itself, in a fixture, or because there was nothing to test; with the error in a line or two."""
    if call.excinfo is None:
        return {"outcome": "error", "said": str(report.longrepr)[:_LONGEST]}
    error = call.excinfo.value
    said = f"{type(error).__name__}: {str(error).strip()}"[:_LONGEST]
    if _is_broken(error):
        return {"outcome": "broken", "said": said}
    return {"outcome": "failed" if report.when == "call" else "error", "said": said}


def _is_broken(error: BaseException | None) -> bool:
    """An error that is no failure of the test: the changed code is no program, or its SQL no statement."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        # 42: syntax error or access rule violation.
        if isinstance(error, _BROKEN) or str(getattr(error, "sqlstate", "")).startswith("42"):
            return True
        error = error.__cause__ or error.__context__
    return False
