"""What a command's exit status means. Frozen: scripts and agents decide by it."""

from enum import IntEnum
from typing import Self, assert_never

from oncebox_models.states import State


class ExitCode(IntEnum):
    """The exit codes of every command; `meaning` is what the reference says."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    OK = 0, "Done. For `status` and `wait`: saved, or (`status`) on its way."
    ERROR = 1, "Something else went wrong; the message says what."
    USAGE = (
        2,
        "The command line, a variable or the input is wrong, or a name is ambiguous. Nothing was written.",
    )
    NOT_FOUND = 3, "What was named does not exist."
    CONFLICT = (
        4,
        "The operation exists with other arguments, or is saved and cannot be cancelled. Nothing was written.",
    )
    OUTCOME_UNKNOWN = 5, "It may or may not be saved. Do not save it under another id."
    SETTLED_UNSAVED = 6, "Settled as refused or not saved: it never will be saved under this id."
    WAIT_TIMED_OUT = 7, "Not settled within the time of a `wait`. It goes on."
    CHECK_FAILED = 8, "A check found something: `verify`, `doctor`, `lag --max-age`, `migrate status`."
    UNREACHABLE = 9, "A database, a broker or a receiver cannot be reached."
    INTERRUPTED = 130, "Ctrl-C."


def of_state(state: State) -> ExitCode:
    """What `status` exits with."""
    match state:
        case State.SAVED | State.PENDING | State.SENDING | State.RETRYING:
            return ExitCode.OK
        case State.UNKNOWN | State.NEEDS_REVIEW:
            return ExitCode.OUTCOME_UNKNOWN
        case State.REFUSED | State.NOT_SAVED:
            return ExitCode.SETTLED_UNSAVED
        case _:
            assert_never(state)


def of_waited(state: State) -> ExitCode:
    """What `wait` exits with when the waiting is over."""
    match state:
        case State.PENDING | State.SENDING | State.RETRYING:
            return ExitCode.WAIT_TIMED_OUT
        case _:
            return of_state(state)
