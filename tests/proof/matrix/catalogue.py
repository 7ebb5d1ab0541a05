"""All rows, and the scenario that plays each: a point without one is missing from the matrix, and fails it."""

from collections.abc import Mapping
from typing import Final

from tests.proof.matrix import scenarios_of_calls, scenarios_of_receiver, scenarios_of_sender
from tests.proof.matrix.moments import Moment, Row, Seam
from tests.proof.matrix.play import Scenario
from tests.proof.matrix.points import points

SCENARIOS: Final[Mapping[Seam, Mapping[str, Scenario]]] = {
    Seam.SENDER_SQL: scenarios_of_sender.SCENARIOS,
    Seam.HTTP: scenarios_of_calls.HTTP,
    Seam.BROKER: scenarios_of_calls.BROKER,
    Seam.RECEIVER_SQL: scenarios_of_receiver.SCENARIOS,
}


def rows() -> list[Row]:
    """Every point of every seam, at every moment."""
    return [Row(seam, point, moment) for seam in Seam for point in points(seam) for moment in Moment]
