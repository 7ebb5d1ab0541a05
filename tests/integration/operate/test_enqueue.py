"""`oncebox enqueue`: committed or refused, all faults at once, the same write for the same id."""

from pathlib import Path

import pytest

from oncebox_models.states import State
from oncebox_outbox.testing import OutboxTesting
from tests.integration.operate.conftest import Oncebox, Ran
from tests.integration.outbox.scenes import Sender

NOTE = ("--operation-id", "note-7", "--folder", "drafts", "--title", "Finding 7")


def test_it_commits_and_says_how_to_go_on(oncebox: Oncebox, sender: Sender) -> None:
    ran = oncebox("enqueue", *NOTE, "--text", "Reef B")
    assert ran == Ran(
        0,
        "Enqueued: note-7 is committed and will be delivered.\n",
        "What became of it: oncebox wait note-7\n",
    )
    assert sender.status().state is State.PENDING


def test_the_same_again_exists_and_shows_the_same_receipt(oncebox: Oncebox, sender: Sender) -> None:
    first = oncebox("enqueue", *NOTE, "--text", "Reef B", "--json").json
    with sender.agent.begin() as connection:
        OutboxTesting().settle(connection, "note-7", State.SAVED)
    again = oncebox("enqueue", *NOTE, "--text", "Reef B", "--json")
    status = oncebox("status", "note-7", "--json")
    assert (first["created"], again.code, again.json["created"]) == (True, 0, False)
    assert again.json["id"] == first["id"]
    receipt = sender.operation(sender.status().id).receipt
    assert f'"receipt":{receipt},' in again.out
    assert f'"receipt":{receipt},' in status.out


def test_a_refused_one_enqueued_again_says_what_to_do_and_sends_nothing(
    oncebox: Oncebox, sender: Sender
) -> None:
    """F40: a duplicate of what has ended says so, with its state."""
    oncebox("enqueue", *NOTE, "--text", "Reef B")
    with sender.agent.begin() as connection:
        OutboxTesting().settle(connection, "note-7", State.REFUSED, reason="folder_not_writable")
    ran = oncebox("enqueue", *NOTE, "--text", "Reef B")
    assert ran.code == 0
    assert ran.out.startswith("Exists already; nothing more is sent. REFUSED: note-7")


def test_other_text_under_the_id_is_a_conflict_and_writes_nothing(oncebox: Oncebox, sender: Sender) -> None:
    oncebox("enqueue", *NOTE, "--text", "Reef B")
    before = sender.everything()
    ran = oncebox("enqueue", *NOTE, "--text", "Reef C", "--json")
    assert (ran.code, ran.error["kind"], ran.error["exit_code"]) == (4, "argument_conflict", 4)
    assert "note-7" in ran.err
    assert "Traceback" not in ran.err
    assert sender.everything() == before


def test_all_faults_are_told_at_once_with_their_paths(oncebox: Oncebox, sender: Sender) -> None:
    """F7: a blank operation_id is a fault, never "no id"."""
    ran = oncebox(
        "enqueue", "--operation-id", " ", "--tenant", "a b", "--deadline", "900d", "--kind", "foo", "--json"
    )
    assert ran.code == 2
    assert [fault["path"] for fault in ran.error["faults"]] == ["tenant", "kind", "operation_id", "deadline"]
    assert sender.everything()["operation"] == []


def test_a_write_must_be_named_or_its_run_and_step_must(oncebox: Oncebox, sender: Sender) -> None:
    unnamed = ("enqueue", "--folder", "drafts", "--title", "T", "--text", "x")
    assert oncebox(*unnamed).code == 2
    ran = oncebox(*unnamed, "--run", "r", "--step", "s", "--json")
    assert (ran.code, ran.json["operation_id"][:12]) == (0, "note.create:")


@pytest.mark.parametrize("source", [("--text", "-"), ("--text-file", "-")])
def test_the_text_can_come_from_stdin(
    oncebox_process: Oncebox, sender: Sender, source: tuple[str, str]
) -> None:
    text = "- a list\n\n- 珊瑚 é\n"
    ran = oncebox_process("enqueue", *NOTE, *source, stdin=text.encode())
    assert ran.code == 0, ran.err
    with sender.agent.connect() as connection:
        OutboxTesting().assert_enqueued(connection, "note-7", text=text, folder="drafts", title="Finding 7")


def test_the_text_can_come_from_a_file(oncebox: Oncebox, sender: Sender, tmp_path: Path) -> None:
    file = tmp_path / "note é.md"
    file.write_text("from a file", encoding="utf-8")
    assert oncebox("enqueue", *NOTE, "--text-file", file).code == 0
    with sender.agent.connect() as connection:
        OutboxTesting().assert_enqueued(connection, "note-7", text="from a file")


def test_a_text_that_cannot_be_read_is_said_without_a_traceback(
    oncebox: Oncebox, oncebox_process: Oncebox, sender: Sender, tmp_path: Path
) -> None:
    missing = oncebox("enqueue", *NOTE, "--text-file", tmp_path / "missing.md")
    assert (missing.code, "missing.md: No such file" in missing.err) == (2, True)
    garbled = oncebox_process("enqueue", *NOTE, "--text", "-", stdin=b"a\xff")
    assert (garbled.code, "byte 1" in garbled.err, "Traceback" in garbled.err) == (2, True, False)
    both = oncebox("enqueue", *NOTE, "--text", "x", "--text-file", "y")
    assert both.code == 2
    assert sender.everything()["operation"] == []


def test_a_text_may_begin_with_a_hyphen(oncebox: Oncebox, sender: Sender) -> None:
    assert oncebox("enqueue", *NOTE, "--text", "- a list item", "--purpose", "-- why").code == 0
    assert sender.status().purpose == "-- why"


def test_a_revision_names_its_note_and_the_version_it_replaces(oncebox: Oncebox, sender: Sender) -> None:
    revise = ("enqueue", "--operation-id", "note-7b", "--note-id", "n1", "--title", "T", "--text", "x")
    assert "arguments.if_match: is required" in oncebox(*revise).err
    assert oncebox(*revise, "--if-match", "1-ab").code == 0
    assert sender.status("note-7b").kind == "note.revise"


def test_an_unknown_destination_is_named_with_those_there_are(oncebox: Oncebox, sender: Sender) -> None:
    ran = oncebox("enqueue", *NOTE, "--text", "x", "--destination", "elsewhere")
    assert (ran.code, "registered destinations: notes" in ran.err) == (2, True)


def test_every_option_can_be_a_variable_and_an_option_wins(oncebox_process: Oncebox, sender: Sender) -> None:
    ran = oncebox_process(
        "enqueue",
        "--title",
        "T",
        ONCEBOX_OPERATION_ID="note-7",
        ONCEBOX_FOLDER="drafts",
        ONCEBOX_TITLE="not this one",
        ONCEBOX_TEXT="x",
        ONCEBOX_TENANT="acme",
        ONCEBOX_PRINCIPAL="analyst",
        ONCEBOX_JSON="1",
        ONCEBOX_DEADLINE="",
    )
    assert (ran.code, ran.json["tenant"], ran.json["principal"]) == (0, "acme", "analyst")
    with sender.agent.connect() as connection:
        OutboxTesting().assert_enqueued(connection, "note-7", title="T")
