"""What the verdict finds by itself, without the databases: notes in another order than they were wanted."""

from datetime import UTC, datetime, timedelta

from tests.proof.chaos.agents import Kept
from tests.proof.chaos.verdict import Verdict, out_of_order
from tests.proof.chaos.wishes import Wish

NOON = datetime(2031, 1, 2, 12, tzinfo=UTC)


def a_wish(number: int, *names: str, ordering_key: str | None = "reef-b") -> Wish:
    return Wish(1, number, names, ("",) * len(names), rolled_back=False, ordering_key=ordering_key)


def made_at(**seconds: int) -> dict[str, tuple[int, datetime]]:
    return {name: (1, NOON + timedelta(seconds=at)) for name, at in seconds.items()}


def test_notes_of_a_key_in_the_order_of_their_wishes_are_in_order() -> None:
    kept = Kept([(a_wish(1, "a", "b"), "committed"), (a_wish(2, "c"), "committed")])
    assert out_of_order(kept, made_at(a=1, b=2, c=3)) == []


def test_a_note_that_overtook_an_earlier_one_of_its_key_is_named() -> None:
    kept = Kept([(a_wish(1, "a", "b"), "committed"), (a_wish(2, "c"), "committed")])
    assert out_of_order(kept, made_at(a=1, b=4, c=3)) == ["c"]
    assert out_of_order(kept, made_at(a=2, b=1, c=3)) == ["b"]


def test_without_a_key_or_a_commit_there_is_no_order() -> None:
    kept = Kept(
        [
            (a_wish(1, "a", ordering_key=None), "committed"),
            (a_wish(2, "b", ordering_key=None), "committed"),
            (a_wish(3, "c", ordering_key=None), "committed"),
            (a_wish(4, "d"), "committed"),
            (a_wish(5, "e"), "rolled back"),
        ]
    )
    assert out_of_order(kept, made_at(a=9, b=5, c=1, d=3, e=2)) == []


def test_a_cancelled_operation_without_a_note_leaves_the_others_in_order() -> None:
    kept = Kept([(a_wish(1, "a", "b"), "committed"), (a_wish(2, "c"), "committed")])
    assert out_of_order(kept, made_at(a=1, c=3)) == []


def test_a_doubt_names_what_it_is_about_and_not_too_much_of_it() -> None:
    verdict = Verdict()
    assert verdict.doubt("are lost", []) == 0
    assert verdict.doubts == []
    assert verdict.doubt("are lost", range(30)) == 30
    assert verdict.doubts[0].startswith("30 are lost: 0, 1, 2")
    assert verdict.doubts[0].endswith("19, …")
