"""The crash matrix: every named statement and call × {before, after, reply lost}, with real processes and SIGKILL."""

from pathlib import Path

import pytest

from tests.proof.matrix import outcome
from tests.proof.matrix.catalogue import SCENARIOS, rows
from tests.proof.matrix.moments import Row
from tests.proof.matrix.page import PAGE, cells
from tests.proof.matrix.play import play
from tests.proof.matrix.town import Town


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.slug)
def test_row(row: Row, town: Town, results: Path | None) -> None:
    """What was committed ends with one note, what was rolled back with none; and so says docs/crash_matrix.md."""
    scenario = SCENARIOS[row.seam][row.point]

    became = play(row, scenario, town)

    if results is not None:
        outcome.write(results, row, scenario.what, became)
    told = cells(PAGE.read_text(encoding="utf-8"))
    assert told.get(row) == became.cell(), (
        "docs/crash_matrix.md is not what happened: see tests/proof/matrix/page.py"
    )
