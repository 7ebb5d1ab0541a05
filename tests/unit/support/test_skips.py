"""In CI a skip is a failure unless it is named."""

from pathlib import Path

import pytest

from tests.support.databases import ROOT
from tests.support.processes import run

TESTS = """
import pytest

def test_passes(): pass

def test_skips(): pytest.skip("no such service")

@pytest.mark.xfail
def test_known(): assert False
"""


@pytest.mark.parametrize(
    ("variables", "outcome"),
    [
        ({"CI": "true"}, "1 failed, 1 passed, 1 xfailed"),
        (
            {"CI": "true", "ONCEBOX_ALLOWED_SKIPS": "*::test_other, *::test_skips"},
            "1 passed, 1 skipped, 1 xfailed",
        ),
        ({"CI": ""}, "1 passed, 1 skipped, 1 xfailed"),
    ],
    ids=["in CI", "in CI, named", "at home"],
)
def test_a_skip_counts_as(tmp_path: Path, variables: dict[str, str], outcome: str) -> None:
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(
        "from tests.conftest import pytest_make_collect_report, pytest_runtest_makereport\n", encoding="utf-8"
    )
    # Without what surrounds this very test: the outer run may be in CI, and may be a worker of pytest-xdist.
    clean = {"PYTEST_ADDOPTS": "", "ONCEBOX_ALLOWED_SKIPS": "", **variables}
    done = run(
        [
            ROOT / ".venv/bin/python",
            "-m",
            "pytest",
            "-q",
            "--rootdir",
            tmp_path,
            "-p",
            "no:cacheprovider",
            "-o",
            "addopts=",
            tmp_path,
        ],
        env={**clean, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=tmp_path,
    )
    assert outcome in done.stdout
