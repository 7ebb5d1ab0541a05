"""What became of a row: the words of one cell of the page, and a line of the results."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.proof.matrix.moments import Moment, Row, Seam


@dataclass(frozen=True, slots=True)
class Outcome:
    """said, held: what the sender said right after the strike, and the notes that the receiver held then.

    later: what the sender said once the leases of the dead had run out, or once the one that lives on had acted on it.
    final, notes: the end.
    """

    said: str
    held: int
    later: str
    final: str
    notes: int

    def cell(self) -> str:
        """`sending` · 1 note, then `unknown` → `saved` · 1 note."""
        then = f", then `{self.later}`" if self.later != self.said else ""
        return f"`{self.said}` · {_notes(self.held)}{then} → `{self.final}` · {_notes(self.notes)}"


def write(folder: Path, row: Row, what: str, outcome: Outcome) -> None:
    """Add the row to the results of a run: one file a row, since the rows run in several processes."""
    folder.mkdir(parents=True, exist_ok=True)
    line = {"seam": row.seam, "point": row.point, "moment": row.moment, "what": what, **asdict(outcome)}
    (folder / f"{row.slug}.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")


def read(folder: Path) -> dict[Row, Outcome]:
    """The results of a run."""
    return dict(
        _parsed(json.loads(file.read_text(encoding="utf-8"))) for file in sorted(folder.glob("*.jsonl"))
    )


def _parsed(line: dict[str, Any]) -> tuple[Row, Outcome]:
    row = Row(Seam(line["seam"]), line["point"], Moment(line["moment"]))
    names = ("said", "held", "later", "final", "notes")
    return row, Outcome(**{name: line[name] for name in names})


def _notes(count: int) -> str:
    return f"{count} note" if count == 1 else f"{count} notes"
