"""docs/crash_matrix.md, written from the results of a run and read back by the rows that are compared with it.

A run writes its results where ONCEBOX_MATRIX_RESULTS says; its rows fail where they are not what the page tells.
Then: python -m tests.proof.matrix.page RESULTS
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.proof.matrix import outcome
from tests.proof.matrix.catalogue import SCENARIOS, rows
from tests.proof.matrix.moments import Moment, Row, Seam
from tests.support.databases import ROOT

PAGE: Final = ROOT / "docs" / "crash_matrix.md"
_TITLES: Final = {
    Seam.SENDER_SQL: "Statements of the sender",
    Seam.HTTP: "Calls to the receiver",
    Seam.BROKER: "Words with the broker",
    Seam.RECEIVER_SQL: "Statements of the note service",
}
_LINE: Final = re.compile(r"\| `([^`]+)` \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|")
_INTRODUCTION: Final = """\
# Crash matrix

Every named statement and every call of the code, × {before, after, reply lost}. Each cell is a run of real processes: one of
them is struck there, both ledgers are looked at, others finish the work, and the receiver's database decides. Committed:
exactly one note, or a state that says why not. Rolled back: none.

- **before**: SIGKILL before anything of it leaves the process.
- **after**: SIGKILL when the whole reply is there, before anybody acts on it.
- **reply lost**: it was executed, the connection is gone before the reply, and the process goes on.

A cell reads: what the sender said right after the strike · the notes that the receiver held then; what the sender said once
the leases of the dead had run out, or once the process that lives on had acted on its loss, where that is something else
→ what it said in the end · the notes in the end. `nothing` stands for an operation that was never committed. Both ledgers
are looked at all the time, not only for what a cell tells: at no look may the sender say `saved` without a note, or
`pending`, `retrying`, `refused` or `not_saved` with one.

The rows come from the code's own lists: a statement or a call without a row fails the build
(`tests/proof/matrix/test_catalogue.py`). A point that was not reached in its run is a failure. This page is written from the
result of a run (`tests/proof/matrix/page.py`), and every run compares each cell with it (`tests/proof/matrix/test_rows.py`).

The crash points sit in three seams, which the tests install in a process before its program starts: SQLAlchemy's cursor
events (and the commit), the HTTP client's transport, and the broker's publish and ack. The note service is another party,
and is struck in a fourth: psycopg's `execute`. The product's modules hold no crash code.

Not in it: the statements of `oncebox demo`, whose databases are thrown away after it; the Redis broker, which confirms
nothing; what SQLAlchemy, Alembic and Celery ask for themselves.
"""


def main(results: Path) -> None:
    """Write the page."""
    PAGE.write_text(render(outcome.read(results)), encoding="utf-8")


def render(outcomes: Mapping[Row, outcome.Outcome]) -> str:
    """The page. Raises KeyError for a row that the results lack."""
    parts = [_INTRODUCTION]
    for seam in Seam:
        moments = " | ".join(Moment)
        parts.append(f"\n## {_TITLES[seam]}\n\n| point | reached by | {moments} |\n|---|---|---|---|---|\n")
        for point in dict.fromkeys(row.point for row in rows() if row.seam is seam):
            cells = [outcomes[Row(seam, point, moment)].cell() for moment in Moment]
            parts.append(f"| `{point}` | {SCENARIOS[seam][point].what} | {' | '.join(cells)} |\n")
    return "".join(parts)


def cells(page: str) -> dict[Row, str]:
    """What a page says, by row."""
    found: dict[Row, str] = {}
    for seam, title in _TITLES.items():
        _, _, section = page.partition(f"\n## {title}\n")
        for line in section.partition("\n## ")[0].splitlines():
            if (match := _LINE.fullmatch(line)) is not None:
                for moment, cell in zip(Moment, match.groups()[2:], strict=True):
                    found[Row(seam, match[1], moment)] = cell
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
