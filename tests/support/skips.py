"""In CI a skipped test is a failure, unless the CI script names it."""

import os
from fnmatch import fnmatchcase

import pytest

ALLOWED = "ONCEBOX_ALLOWED_SKIPS"


def in_ci() -> bool:
    return os.environ.get("CI", "") not in ("", "0", "false")


def fail_if_forbidden(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure when CI is set and no pattern of ONCEBOX_ALLOWED_SKIPS (node ids with
    ``*``, separated by commas) matches. An expected failure (xfail) is no skip."""
    if report.outcome != "skipped" or not in_ci() or hasattr(report, "wasxfail"):
        return
    patterns = [pattern.strip() for pattern in os.environ.get(ALLOWED, "").split(",")]
    if any(pattern and fnmatchcase(report.nodeid, pattern) for pattern in patterns):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"skipped, but CI allows no skip that {ALLOWED} does not name: {reason}"
