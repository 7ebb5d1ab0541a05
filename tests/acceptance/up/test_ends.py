"""However `up` or a part of it ends: nothing stays behind, nothing is lost, and what happened is said."""

import os
import signal

import pytest

from tests.acceptance.up.running import ENDED, Machine, Terminal, children_of, the_child, wait_until_gone
from tests.support.polling import eventually


def test_parts_that_are_killed_are_started_again_and_work_goes_on(machine: Machine) -> None:
    up = machine.ready_up("--workers", "1")
    for part, pattern in (
        ("worker 1", r"main worker$"),
        ("relay", r"main relay$"),
        ("note service", r"oncebox_notes serve$"),
        ("broker", r"valkey-server "),
        ("database", r"bin/postgres -D"),
    ):
        os.kill(the_child(up, pattern), signal.SIGKILL)
        up.wait_for_log(rf"{part}: ended by SIGKILL", timeout=20)
        up.wait_for_log(rf"{part}: started again", timeout=60)

    assert machine.saves("note-7")["state"] == "saved"
    assert up.terminate(timeout=60) == 0


def test_kill_9_leaves_no_process_and_the_next_up_goes_on_with_the_data(machine: Machine) -> None:
    up = machine.ready_up()
    machine.saves("note-7")
    token = machine.state()["places"]["token"]
    children = children_of(up)
    assert len(children) >= 10
    up.kill()

    told = machine.types("status", "note-7", ends_with=2)
    assert f"(process {up.pid}) has ended" in told.stderr
    again = machine.ready_up()
    wait_until_gone(children)
    assert machine.types("status", "note-7").stdout.startswith("Saved")
    assert machine.state()["places"]["token"] == token, "a token is not made anew at each start"
    assert machine.saves("note-8")["state"] == "saved"

    again.send_signal(signal.SIGINT)
    assert again.wait(60) == 0
    again.wait_for_log(ENDED)
    order = [
        again.log_text().index(f"✓ {part} ", again.log_text().index("Finishing"))
        for part in ("2 workers", "relay", "note service", "broker", "database")
    ]
    assert order == sorted(order), "the database ends last"


def test_a_part_that_cannot_start_shows_the_end_of_its_log_and_where_it_is(machine: Machine) -> None:
    told = machine.types("up", "--workers", "1", ends_with=1, ONCEBOX_LEASE_S="5")

    assert "Worker 1 did not start: ended with exit code 1" in told.stderr
    assert str(machine.data / "logs" / "worker-1.log") in told.stderr
    assert "set ONCEBOX_LEASE_S to at least 30" in told.stderr
    assert eventually(lambda: machine.types("lag", ends_with=2), timeout=10)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--broker", "amqp://guest:secret@127.0.0.1:1"), 9, "Cannot reach the broker at amqp://127.0.0.1:1"),
        (
            ("--database-url", "postgresql://u:secret@127.0.0.1:1/x"),
            9,
            "Cannot reach PostgreSQL at 127.0.0.1:1",
        ),
        (("--broker", "http://127.0.0.1:1"), 2, "must be one of amqp"),
        (("--workers", "0"), 2, "must be from 1 to 64"),
        (("--data", "/dev/null/x"), 1, "choose a folder that you may write to"),
    ],
)
def test_what_cannot_be_used_is_named_without_its_password(
    machine: Machine, arguments: tuple[str, ...], code: int, said: str
) -> None:
    told = machine.types("up", *arguments, ends_with=code)

    assert said in told.stderr
    assert "secret" not in told.stderr + told.stdout


def test_a_terminal_gets_one_live_line_and_ctrl_c_says_what_it_does(machine: Machine) -> None:
    terminal = Terminal(machine, "up", "--workers", "1", NO_COLOR="1")
    try:
        terminal.wait_for(r"open 0  unknown 0  oldest -  saved 0")
        machine.saves("note-7")
        terminal.wait_for(r"saved 1")
        assert terminal.interrupt() == 0
        assert "Finishing what is under way" in terminal.text
        assert "Ended after" in terminal.text
        # No colour: only what moves the cursor or hides it.
        assert "\x1b[3" not in terminal.text.replace("\x1b[?25", "")
    finally:
        terminal.close()
