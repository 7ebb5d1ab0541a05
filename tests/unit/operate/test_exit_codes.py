"""Exit codes are frozen: scripts and agents decide by them."""

from oncebox_models.states import State
from oncebox_operate import exit_codes
from oncebox_operate.exit_codes import ExitCode


def test_the_codes_are_those_of_the_contract() -> None:
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130]


def test_status_says_definite_nos_and_unknown_outcomes() -> None:
    assert {state: int(exit_codes.of_state(state)) for state in State} == {
        State.PENDING: 0,
        State.SENDING: 0,
        State.RETRYING: 0,
        State.SAVED: 0,
        State.UNKNOWN: 5,
        State.NEEDS_REVIEW: 5,
        State.REFUSED: 6,
        State.NOT_SAVED: 6,
    }


def test_wait_never_takes_what_is_not_settled_for_saved() -> None:
    """R18: pending is not success."""
    assert {state: int(exit_codes.of_waited(state)) for state in State} == {
        State.PENDING: 7,
        State.SENDING: 7,
        State.RETRYING: 7,
        State.SAVED: 0,
        State.UNKNOWN: 5,
        State.NEEDS_REVIEW: 5,
        State.REFUSED: 6,
        State.NOT_SAVED: 6,
    }
