"""`status`, `wait`, `show`, `list`: what people and programs are told, and what the process exits with."""

import signal
from uuid import UUID

import pytest

from oncebox_models.outcomes import Outcome
from oncebox_models.states import State
from oncebox_outbox import Outbox
from oncebox_outbox.testing import OutboxTesting
from tests.integration.operate.conftest import ONCEBOX, Oncebox
from tests.integration.outbox.scenes import Sender, saved, write
from tests.support.polling import eventually
from tests.support.processes import Processes


def settle(sender: Sender, state: State, reason: str = "test") -> None:
    with sender.agent.begin() as connection:
        OutboxTesting().settle(connection, "note-7", state, reason=reason)


def wait_until_connected(sender: Sender) -> None:
    """Return when the process that waits has begun to look."""
    eventually(
        lambda: sender.scalar(
            "select exists (select from pg_stat_activity"
            " where datname = current_database() and application_name = 'oncebox')"
        ),
        what="wait is connected",
    )


@pytest.mark.parametrize(
    ("state", "code", "words"),
    [
        (State.SAVED, 0, "Saved: note-7"),
        (State.REFUSED, 6, "REFUSED: note-7"),
        (State.NOT_SAVED, 6, "NOT SAVED: note-7"),
        (State.NEEDS_REVIEW, 5, "OUTCOME UNKNOWN: note-7"),
    ],
)
@pytest.mark.parametrize("command", ["status", "wait"])
def test_what_is_settled_is_said_and_exits_by_its_end(
    oncebox: Oncebox, sender: Sender, command: str, state: State, code: int, words: str
) -> None:
    sender.enqueue_one()
    settle(sender, state)
    ran = oncebox(command, "note-7")
    assert (ran.code, ran.out[: len(words)]) == (code, words)
    assert oncebox(command, "note-7", "--json").json["state"] == state


def test_what_is_on_its_way_is_no_error_of_status_and_a_timeout_of_wait(
    oncebox: Oncebox, sender: Sender
) -> None:
    """R18: pending is not success for one who waits."""
    sender.enqueue_one()
    assert oncebox("status", "note-7").code == 0
    waited = oncebox("wait", "note-7", "--timeout", "200ms")
    assert (waited.code, waited.out[:12]) == (7, "NOT SENT YET")
    assert oncebox("wait", "note-7", "--timeout", "0").code == 7


def test_an_unknown_outcome_exits_with_5_from_both(oncebox: Oncebox, sender: Sender) -> None:
    call = sender.claim_one(sender.enqueue_one())
    sender.answer(call, Outcome.UNKNOWN, "timeout")
    assert oncebox("status", "note-7").code == 5
    waited = oncebox("wait", "note-7", "--timeout", "0.1", "--json")
    assert (waited.code, waited.json["state"], waited.json["definite"]) == (5, "unknown", False)
    assert (waited.json["attempts"], waited.json["unanswered"]) == (1, 1)


def test_wait_ends_as_soon_as_the_operation_is_settled(
    processes: Processes, oncebox: Oncebox, sender: Sender
) -> None:
    id = sender.enqueue_one()
    waiting = processes.start("wait", [ONCEBOX, "wait", "note-7", "--timeout", "60s"])
    wait_until_connected(sender)
    call = sender.claim_one(id)
    sender.settle(call, saved(call))
    assert waiting.wait(10) == 0
    assert "Saved: note-7 is note id-of-note-7 version 1" in waiting.log_text()


def test_ctrl_c_ends_a_wait_with_130_and_no_traceback(
    processes: Processes, oncebox: Oncebox, sender: Sender
) -> None:
    sender.enqueue_one()
    waiting = processes.start("wait", [ONCEBOX, "wait", "note-7", "--timeout", "60s"])
    wait_until_connected(sender)
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(10) == 130
    assert waiting.log_text().splitlines()[-1] == "Interrupted."
    assert "Traceback" not in waiting.log_text()


def test_an_operation_that_is_not_there_is_exit_3_and_says_where_it_looked(
    oncebox: Oncebox, sender: Sender
) -> None:
    for command in ("status", "wait", "show"):
        ran = oncebox(command, "note-7", "--tenant", "acme", "--json")
        assert (ran.code, ran.error["kind"]) == (3, "not_found")
        assert "'note-7' for tenant acme" in ran.error["message"]


def test_a_name_that_several_parties_use_is_exit_2_with_the_list_and_can_be_narrowed(
    oncebox: Oncebox, sender: Sender
) -> None:
    ids = {
        tenant: sender.enqueue(write(), outbox=Outbox(tenant, "researcher"))[0].id
        for tenant in ("acme", "demo")
    }
    ran = oncebox("status", "note-7", "--json")
    assert (ran.code, ran.error["kind"]) == (2, "ambiguous")
    assert {match["tenant"]: UUID(str(match["id"])) for match in ran.error["matches"]} == ids
    assert str(ids["acme"]) in ran.err
    assert oncebox("status", "note-7", "--tenant", "acme", "--json").json["id"] == str(ids["acme"])
    assert oncebox("wait", ids["demo"], "--timeout", "0", "--json").json["tenant"] == "demo"


def test_show_has_every_call_in_order_with_outcome_and_reason(oncebox: Oncebox, sender: Sender) -> None:
    id = sender.enqueue_one()
    send = sender.claim_one(id)
    sender.answer(send, Outcome.UNKNOWN, "timeout")
    sender.make_due(id)
    asked = sender.claim_one(id)
    sender.settle(asked, saved(asked))
    ran = oncebox("show", "note-7", "--json")
    assert ran.code == 0
    assert [
        (call["call_id"], call["kind"], call["outcome"], call["reason"]) for call in ran.json["calls"]
    ] == [
        (str(send.call_id), "send", "unknown", "timeout"),
        (str(asked.call_id), "status", "receipt", "created"),
    ]
    assert all(call["started_at"] <= call["finished_at"] for call in ran.json["calls"])
    _, text = oncebox("show", "note-7").out.split("at (UTC)")
    assert text.index("enqueued") < text.index("timeout") < text.index("receipt") < text.index("settled")


def test_a_call_under_way_has_no_outcome_yet(oncebox: Oncebox, sender: Sender) -> None:
    sender.claim_one(sender.enqueue_one())
    (call,) = oncebox("show", "note-7", "--json").json["calls"]
    assert (call["outcome"], call["finished_at"]) == (None, None)
    assert "under way" in oncebox("show", "note-7").out


def test_list_is_json_lines_newest_first_page_by_page(oncebox: Oncebox, sender: Sender) -> None:
    for number in range(5):
        sender.enqueue_one(f"note-{number}")
    first = oncebox("list", "--json", "--limit", "3")
    second = oncebox("list", "--json", "--limit", "3", "--before", first.lines[-1]["id"])
    assert [line["operation_id"] for line in first.lines + second.lines] == [
        f"note-{n}" for n in (4, 3, 2, 1, 0)
    ]
    assert f"--before {first.lines[-1]['id']}" in first.err
    assert second.err == ""


def test_list_filters_by_state_party_and_run(oncebox: Oncebox, sender: Sender) -> None:
    sender.enqueue_one("note-7")
    sender.enqueue(write("note-8"), outbox=Outbox("acme", "researcher"))
    settle(sender, State.REFUSED)

    def names(*filters: str) -> list[str]:
        return [line["operation_id"] for line in oncebox("list", "--json", *filters).lines]

    assert names("--state", "refused") == ["note-7"]
    assert names("--state", "refused", "--state", "pending") == ["note-8", "note-7"]
    assert names("--tenant", "acme") == ["note-8"]
    assert names("--run", "run-42", "--principal", "researcher") == ["note-8", "note-7"]
    assert names("--run", "another") == []


def test_empty_lists_say_what_to_do_next_on_stderr(oncebox: Oncebox, sender: Sender) -> None:
    assert oncebox("list").err == "There are no operations yet. Enqueue one: oncebox enqueue --help\n"
    assert oncebox("list", "--state", "saved").err.startswith("No operation matches.")
    assert oncebox("list", "--json").out == ""


def test_a_purpose_cannot_steer_the_terminal_that_shows_it(oncebox: Oncebox, sender: Sender) -> None:
    ran = oncebox(
        "enqueue",
        "--operation-id=note-7",
        "--folder=f",
        "--title=t",
        "--text=x",
        "--purpose",
        "evil \x1b[2J[bold]x",
    )
    assert ran.code == 0
    shown = oncebox("status", "note-7").out
    assert "\x1b" not in shown
    assert "evil \\u001b[2J[bold]x" in shown
