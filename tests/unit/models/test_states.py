"""The states and the arrows between them hang together."""

from oncebox_models.states import ARROWS, DEFINITE_STATES, FINAL_STATES, LIVE_STATES, State


def test_each_state_is_live_or_final() -> None:
    assert set(State) == LIVE_STATES | FINAL_STATES
    assert LIVE_STATES.isdisjoint(FINAL_STATES)


def test_no_arrow_leaves_a_definite_state() -> None:
    assert [arrow for arrow in ARROWS if arrow.source in DEFINITE_STATES] == []


def test_something_moves_every_state_on_that_is_not_definite() -> None:
    """Invariant 13."""
    assert {arrow.source for arrow in ARROWS} == {None, *LIVE_STATES, State.NEEDS_REVIEW}


def test_every_state_is_reached_from_the_enqueue() -> None:
    reached: set[State | None] = {None}
    while more := {arrow.target for arrow in ARROWS if arrow.source in reached} - reached:
        reached |= more
    assert reached == {None, *State}


def test_an_arrow_is_listed_once() -> None:
    assert len(set(ARROWS)) == len(ARROWS)
