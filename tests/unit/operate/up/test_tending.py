"""A part that ends by itself is started again, later and later, and not for ever."""

import pytest

from oncebox_operate.embedded import EmbeddedError
from oncebox_operate.up.tending import PartLost, Tended


class Part:
    """Ends when it is told to, and counts its starts."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.starts = 1
        self.refuses = False

    def exit_status(self) -> int | None:
        return self.status

    def failure(self, what: str) -> EmbeddedError:
        return EmbeddedError(f"{what}\nThe last lines of its log")

    def restart(self) -> None:
        if self.refuses:
            raise EmbeddedError("port 5 is taken")
        self.starts += 1
        self.status = None


class Watched:
    """A part under watch, with a clock of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.part = Part()
        self.tended = Tended("relay", self.part, lambda: self.now)

    def looks(self, seconds: float) -> list[str]:
        """What is told while that time passes."""
        told: list[str] = []
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            if news := self.tended.look():
                told.append(news)
        return told


def test_a_part_that_runs_is_left_alone() -> None:
    watched = Watched()

    assert watched.looks(100) == []
    assert watched.part.starts == 1


def test_a_part_that_ends_is_started_again_and_how_it_ended_is_told() -> None:
    watched = Watched()
    watched.looks(1)
    watched.part.status = 137

    assert watched.looks(2) == ["relay: ended by SIGKILL; starts again in 0.5 s", "relay: started again"]
    assert watched.part.starts == 2


def test_the_delays_grow_and_the_sixth_end_in_a_row_is_the_last() -> None:
    watched = Watched()
    delays: list[str] = []
    for _ in range(5):
        watched.part.status = 1
        delays += [news.partition("again in ")[2] for news in watched.looks(20) if "again in" in news]
    assert delays == ["0.5 s", "1 s", "2 s", "4 s", "8 s"]

    watched.part.status = 1
    with pytest.raises(
        PartLost, match=r"Relay keeps ending \(6 times in a row.*exit code 1\)[\s\S]*last lines"
    ):
        watched.looks(1)


def test_after_a_minute_of_health_the_count_begins_again() -> None:
    watched = Watched()
    for _ in range(20):
        watched.part.status = 1
        assert "again in 0.5 s" in watched.looks(90)[0]


def test_a_start_that_fails_counts_as_one_more_end_and_says_why() -> None:
    watched = Watched()
    watched.part.status, watched.part.refuses = 1, True

    told = watched.looks(5)

    assert told[1] == "relay: did not start (port 5 is taken); starts again in 1 s"
    with pytest.raises(PartLost, match="port 5 is taken"):
        watched.looks(100)
