"""What a command prints becomes the statement that a person or a script takes from it; what says nothing becomes none."""

import json

import pytest

from oncebox_models.states import State
from tests.proof.history import answers
from tests.proof.history.answers import NoStatement
from tests.proof.history.statements import (
    AbsentSaid,
    Command,
    ExitSaid,
    Key,
    LagSaid,
    ReceiverSaid,
    StateSaid,
)

KEY = Key("demo", "researcher", "note-7")
RECEIPT = {"operation_id": "note-7", "args_hash": "ab", "note": {"version": 1, "id": "n"}}
CANONICAL = '{"args_hash":"ab","note":{"id":"n","version":1},"operation_id":"note-7"}'
FAILURE = json.dumps({"error": {"kind": "unreachable", "exit_code": 9, "message": "no database"}})


def printed(state: State) -> str:
    """What `oncebox status --json` prints, as far as it is looked at."""
    saved = state is State.SAVED
    return json.dumps(
        {
            **KEY._asdict(),
            "state": state,
            "say": "…",
            "receipt": RECEIPT if saved else None,
            "attempts": None if saved else 1,
        }
    )


def test_a_status_is_two_statements() -> None:
    assert answers.of_command(KEY, "status", 0, [printed(State.SAVED)]) == [
        StateSaid(KEY, State.SAVED, "…", CANONICAL, None),
        ExitSaid(KEY, "status", 0, State.SAVED),
    ]


def test_an_exit_code_that_nobody_foresaw_is_still_said() -> None:
    """So that it is judged against the state that was printed."""
    _, exited = answers.of_command(KEY, "wait", 1, [printed(State.UNKNOWN)])

    assert exited == ExitSaid(KEY, "wait", 1, State.UNKNOWN)


def test_a_command_that_was_killed_has_no_exit_code() -> None:
    assert answers.of_command(KEY, "status", -9, [printed(State.UNKNOWN)]) == [
        StateSaid(KEY, State.UNKNOWN, "…", None, 1)
    ]


def test_a_script_takes_an_exit_code_at_its_word() -> None:
    assert answers.of_command(KEY, "wait", 0, []) == [ExitSaid(KEY, "wait", 0)]


def test_not_found_is_a_statement() -> None:
    assert answers.of_command(KEY, "status", 3, [FAILURE]) == [AbsentSaid(KEY)]


@pytest.mark.parametrize("command", ["status", "wait"])
@pytest.mark.parametrize(
    ("code", "lines"),
    [(9, [FAILURE]), (130, []), (-9, []), (-9, ['{"state": "sa']), (1, ["Traceback"])],
    ids=["unreachable", "interrupted", "killed", "killed while printing", "broken"],
)
def test_a_failure_is_no_statement(command: Command, code: int, lines: list[str]) -> None:
    with pytest.raises(NoStatement):
        answers.of_command(KEY, command, code, lines)


def test_a_list_is_a_statement_a_line() -> None:
    listed = answers.of_list_command(0, [printed(State.UNKNOWN), printed(State.SAVED)])

    assert [said.state for said in listed if isinstance(said, StateSaid)] == [State.UNKNOWN, State.SAVED]


def test_lag_is_summed_over_destinations() -> None:
    def destination(name: str, **states: int) -> dict[str, object]:
        by_state = {state: {"entries": entries, "oldest_age_s": 1.0} for state, entries in states.items()}
        return {"destination": name, "states": by_state}

    shown = {
        "entries": 6,
        "oldest_age_s": 1.5,
        "destinations": [destination("a", unknown=1, pending=2), destination("b", unknown=3)],
    }

    # Exit 8 is what --max-age asks for; the numbers are said all the same.
    assert answers.of_lag_command(8, [json.dumps(shown)]) == LagSaid(
        6, 1.5, {State.UNKNOWN: 4, State.PENDING: 2}
    )


def test_a_scrape_is_summed_over_destinations() -> None:
    scraped = """
# TYPE outbox_entries gauge
outbox_entries{destination="a",state="unknown"} 1.0
outbox_entries{destination="a",state="pending"} 0.0
outbox_entries{destination="b",state="unknown"} 3.0
# TYPE outbox_oldest_entry_age_seconds gauge
outbox_oldest_entry_age_seconds{destination="a"} 2.25
outbox_oldest_entry_age_seconds{destination="b"} 0.5
"""

    assert answers.of_metrics(200, scraped) == LagSaid(4, 2.25, {State.UNKNOWN: 4, State.PENDING: 0})


@pytest.mark.parametrize(("status", "text"), [(500, "no numbers"), (200, "")])
def test_a_scrape_without_numbers_is_no_statement(status: int, text: str) -> None:
    """Nothing said must not be read as nothing open."""
    with pytest.raises(NoStatement):
        answers.of_metrics(status, text)


def test_the_receivers_receipt_is_brought_to_the_same_bytes() -> None:
    answer = {**RECEIPT, "state": "completed", "as_of": "2031-01-02T03:04:05Z"}

    assert answers.of_receiver(KEY, 200, json.dumps(answer)) == ReceiverSaid(KEY, "completed", CANONICAL)


def test_a_receiver_that_holds_no_note_gives_no_receipt() -> None:
    answer = {"operation_id": "note-7", "state": "sealed", "args_hash": "ab", "note": None}

    assert answers.of_receiver(KEY, 200, json.dumps(answer)) == ReceiverSaid(KEY, "sealed")


@pytest.mark.parametrize(("status", "text"), [(503, "{}"), (200, "<html>")])
def test_a_receiver_that_fails_says_nothing(status: int, text: str) -> None:
    with pytest.raises(NoStatement):
        answers.of_receiver(KEY, status, text)
