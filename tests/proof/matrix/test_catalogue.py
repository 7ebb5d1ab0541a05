"""The matrix is whole: each named statement and each call has a scenario, each row a cell; and a miss is a failure."""

import re
from pathlib import Path

import pytest

from oncebox_operate.demo import statements as demo
from oncebox_outbox import statements as outbox
from tests.proof.matrix.catalogue import SCENARIOS, rows
from tests.proof.matrix.forks import NotReached
from tests.proof.matrix.moments import Moment, Row, Seam
from tests.proof.matrix.page import PAGE, cells
from tests.proof.matrix.play import Scenario, play
from tests.proof.matrix.points import points, receiver_expressions, receiver_statements
from tests.proof.matrix.seams.http_calls import REQUESTS
from tests.proof.matrix.stage import pending
from tests.proof.matrix.town import Town
from tests.support.databases import ROOT

_NAMING = re.compile(r"\b_?named\(\s*\"(\w+)\"")
_SENDER = ("models", "outbox", "destinations", "worker", "operate")


@pytest.mark.parametrize("seam", Seam)
def test_every_point_has_a_scenario_and_every_scenario_a_point(seam: Seam) -> None:
    """A new statement or call, or one that is gone, shows here."""
    assert sorted(SCENARIOS[seam]) == points(seam)


def test_every_statement_that_is_named_in_the_senders_code_is_a_point_but_for_the_demonstrations() -> None:
    """Whatever module names it, and whether or not it is in the outbox's list."""
    named = {name for folder in _SENDER for file in (ROOT / folder).rglob("*.py") for name in _named_in(file)}

    assert named - _named_in(Path(demo.__file__)) == set(points(Seam.SENDER_SQL)) - {
        "COMMIT cancel",
        "COMMIT enqueue",
    }


def test_no_two_statements_share_a_name_or_a_text() -> None:
    """The seams tell them apart by it."""
    assert len(set(outbox.NAMES)) == len(outbox.NAMES)
    assert len(set(receiver_statements().values())) == len(receiver_statements())


def test_what_the_note_service_names_and_is_no_statement_is_part_of_one() -> None:
    assert receiver_expressions() == ["GRANT_LOCK", "KEY_LOCK"]


def test_the_http_seam_knows_every_call_of_a_destination() -> None:
    assert sorted(REQUESTS) == points(Seam.HTTP)


def test_the_page_has_a_cell_for_each_row_and_no_other() -> None:
    assert sorted(cells(PAGE.read_text(encoding="utf-8"))) == sorted(rows())


def test_a_point_that_is_not_reached_is_a_failure(town: Town) -> None:
    """Here the victim ends without coming to it."""
    row = Row(Seam.SENDER_SQL, "claim", Moment.BEFORE)
    elsewhere = Scenario(
        "`oncebox version`", pending, lambda scene: scene.town.cast.start("oncebox", "version", arm=scene.arm)
    )

    with pytest.raises(NotReached):
        play(row, elsewhere, town)


def _named_in(file: Path) -> set[str]:
    return set(_NAMING.findall(file.read_text(encoding="utf-8")))
