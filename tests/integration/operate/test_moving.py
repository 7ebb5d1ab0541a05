"""`oncebox retry`, `cancel`, `reconcile`, and wanting again by `enqueue --supersedes`."""

import shlex
import threading

import pytest

from oncebox_models.outcomes import Outcome
from oncebox_models.states import CallKind, State, Wanted
from oncebox_outbox import Outbox
from oncebox_outbox.policy import Policy
from oncebox_outbox.pruning import prune
from oncebox_outbox.settling import park_poison
from oncebox_outbox.testing import OutboxTesting
from tests.integration.operate.conftest import Oncebox
from tests.integration.outbox.scenes import Sender, saved, write
from tests.support.polling import eventually

LATER_S = 3600.0


def settle(sender: Sender, state: State, operation_id: str = "note-7") -> None:
    with sender.agent.begin() as connection:
        OutboxTesting().settle(connection, operation_id, state, reason="folder_not_writable")


def unknown(sender: Sender, operation_id: str = "note-7") -> None:
    id = sender.enqueue_one(operation_id)
    sender.answer(sender.claim_one(id), Outcome.UNKNOWN, "timeout", retry_after_s=LATER_S)


def set_aside(sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.claim_one(id)
    sender.lapse(id)
    park_poison(sender.worker, Policy(poison_claims=1), limit=1)


def test_a_retry_makes_it_due_and_says_which_call_is_next(oncebox: Oncebox, sender: Sender) -> None:
    unknown(sender)
    ran = oncebox("retry", "note-7", "--json")
    assert (ran.code, ran.json["did"], ran.json["next_call"], ran.json["state"]) == (
        0,
        "due",
        "status",
        "unknown",
    )
    assert (ran.json["command"], ran.json["waits_for"], ran.json["attempts"]) == (None, None, 1)
    assert sender.dispatched() == [sender.status().id]
    text = oncebox("retry", "note-7").out
    assert text.startswith("OUTCOME UNKNOWN: note-7")
    assert "before anything is sent again, is due now" in text


def test_a_retry_leaves_a_call_alone_and_says_so(oncebox: Oncebox, sender: Sender) -> None:
    sender.claim_one(sender.enqueue_one())
    ran = oncebox("retry", "note-7", "--json")
    assert (ran.code, ran.json["did"], ran.json["state"]) == (0, "under_way", "sending")


def test_a_retry_says_what_a_due_call_still_waits_for(oncebox: Oncebox, sender: Sender) -> None:
    """F34: that an earlier one of its key holds it back is said."""
    sender.enqueue(write("a", ordering_key="k"), write("b", ordering_key="k"))
    assert oncebox("retry", "b", "--json").json["waits_for"] == "ordering_key"
    sender.change("update oncebox.destination set capabilities = null, capabilities_seen_at = null", ())
    assert "oncebox worker" in oncebox("retry", "a").out


def test_a_retry_of_what_is_saved_says_so(oncebox: Oncebox, sender: Sender) -> None:
    sender.enqueue_one()
    settle(sender, State.SAVED)
    ran = oncebox("retry", "note-7")
    assert (ran.code, ran.out.startswith("Saved: note-7")) == (0, True)
    assert oncebox("retry", "note-7", "--json").json["command"] is None


def test_a_retry_of_what_is_set_aside_is_a_persons_decision(oncebox: Oncebox, sender: Sender) -> None:
    set_aside(sender)
    ran = oncebox("retry", "note-7")
    assert (ran.code, "until a person has decided" in ran.out) == (5, True)


@pytest.mark.parametrize("state", [State.REFUSED, State.NOT_SAVED])
def test_a_resend_is_a_new_operation_by_the_command_that_retry_prints(
    oncebox: Oncebox, sender: Sender, state: State
) -> None:
    """The whole write is taken over; the name is free; the command works as it is printed."""
    old = sender.enqueue_one(ordering_key="k", text="Reef 'B' \n珊瑚")
    settle(sender, state)
    sender.enqueue(write("note-7-2"))
    ran = oncebox("retry", "note-7", "--json")
    assert (ran.code, ran.json["did"]) == (6, "settled")
    assert oncebox("retry", "note-7").out.splitlines()[-1] == ran.json["command"]
    program, *typed = shlex.split(ran.json["command"])
    assert program == "oncebox"
    again = oncebox(*typed, "--json")
    assert (again.code, again.json["operation_id"], again.json["created"]) == (0, "note-7-3", True)
    first, second = sender.operation(old), sender.operation(sender.status("note-7-3").id)
    for name in ("arguments", "args_hash", "kind", "intent_id", "ordering_key"):
        assert getattr(second, name) == getattr(first, name), name
    assert second.supersedes == old
    assert oncebox(*typed, "--json").json["created"] is False, "typed twice it is the same write"


def test_what_is_corrected_wins_over_what_is_taken_over(oncebox: Oncebox, sender: Sender) -> None:
    sender.enqueue_one()
    settle(sender, State.REFUSED)
    again = ("enqueue", "--operation-id", "note-7b", "--supersedes", "note-7")
    assert oncebox(*again, "--folder", "team", "--purpose", "corrected").code == 0
    with sender.agent.connect() as connection:
        status = OutboxTesting().assert_enqueued(
            connection, "note-7b", folder="team", title="Finding 7", text="Reef B"
        )
    assert (status.run, status.step) == ("run-42", "summarise")


def test_a_resend_needs_a_name_of_its_own(oncebox: Oncebox, sender: Sender) -> None:
    sender.enqueue_one()
    settle(sender, State.REFUSED)
    ran = oncebox("enqueue", "--supersedes", "note-7")
    assert (ran.code, "--operation-id note-7-2" in ran.err) == (2, True)


def test_nothing_replaces_what_may_still_be_saved(oncebox: Oncebox, sender: Sender) -> None:
    again = (
        "enqueue",
        "--operation-id",
        "b",
        "--supersedes",
        "note-7",
        "--folder=f",
        "--title=t",
        "--text=x",
    )
    assert oncebox(*again).code == 3
    unknown(sender)
    ran = oncebox(*again, "--json")
    assert (ran.code, ran.error["kind"], "oncebox cancel" in ran.error["hint"]) == (5, "not_settled", True)
    sender.make_due(sender.status().id)
    assert sender.claim_one(sender.status().id).kind is CallKind.STATUS
    assert oncebox(*again).code == 5
    assert len(sender.everything()["operation"]) == 1


def test_nothing_replaces_what_is_set_aside(oncebox: Oncebox, sender: Sender) -> None:
    set_aside(sender)
    assert oncebox("enqueue", "--operation-id", "b", "--supersedes", "note-7").code == 5


def test_what_is_saved_is_not_wanted_again_by_itself(oncebox: Oncebox, sender: Sender) -> None:
    """A second note must be asked for in full."""
    sender.enqueue_one()
    settle(sender, State.SAVED)
    again = ("enqueue", "--operation-id", "note-7b", "--supersedes", "note-7")
    assert "arguments.text: is required" in oncebox(*again).err
    assert oncebox(*again, "--folder=drafts", "--title=T", "--text=x").code == 0


def test_what_was_pruned_must_be_said_again(oncebox: Oncebox, sender: Sender) -> None:
    sender.enqueue_one()
    settle(sender, State.NOT_SAVED)
    prune(sender.worker, older_than_s=0)
    assert oncebox("retry", "note-7").out.rstrip().endswith("--folder FOLDER --title TITLE --text TEXT")


def test_a_cancel_before_anything_was_sent_is_done_at_once(oncebox: Oncebox, sender: Sender) -> None:
    sender.enqueue_one()
    ran = oncebox("cancel", "note-7", "--json")
    assert (ran.code, ran.json["did"], ran.json["state"], ran.json["reason"]) == (
        0,
        "settled",
        "not_saved",
        "cancelled",
    )
    again = oncebox("cancel", "note-7", "--json")
    assert (again.code, again.json["did"]) == (0, "nothing")


def test_a_cancel_after_a_call_asks_for_the_seal_and_does_not_claim_more(
    oncebox: Oncebox, sender: Sender
) -> None:
    unknown(sender)
    ran = oncebox("cancel", "note-7")
    assert ran.code == 0
    assert ran.out.startswith("OUTCOME UNKNOWN: note-7")
    assert "it may still prove to be saved" in ran.out
    assert sender.status().wanted is Wanted.ABANDON
    assert oncebox("cancel", "note-7", "--json").json["did"] == "nothing"


def test_a_cancel_that_comes_too_late_is_a_conflict(oncebox: Oncebox, sender: Sender) -> None:
    sender.enqueue_one()
    settle(sender, State.SAVED)
    ran = oncebox("cancel", "note-7")
    assert (ran.code, "too late" in ran.out) == (4, True)


@pytest.mark.parametrize(
    ("outcome", "code", "words"), [("sealed", 0, "closed its key"), ("receipt", 4, "too late")]
)
def test_a_cancel_can_wait_for_the_receivers_word(
    oncebox: Oncebox, sender: Sender, outcome: str, code: int, words: str
) -> None:
    unknown(sender)
    id = sender.status().id

    def worker() -> None:
        eventually(lambda: sender.live_entry(id).wanted == "abandon", what="it is cancelled")
        call = sender.claim_one(id)
        assert call.kind is CallKind.SEAL
        sender.settle(call, saved(call)) if outcome == "receipt" else sender.answer(call, Outcome.SEALED)

    answering = threading.Thread(target=worker)
    answering.start()
    ran = oncebox("cancel", "note-7", "--wait", "--timeout", "30s")
    answering.join(30)
    assert (ran.code, words in ran.out) == (code, True)


def test_a_cancel_that_waits_in_vain_says_what_is_known(oncebox: Oncebox, sender: Sender) -> None:
    unknown(sender)
    assert oncebox("cancel", "note-7", "--wait", "--timeout", "0").code == 5
    sender.make_due(sender.status().id)
    assert sender.claim_one(sender.status().id).kind is CallKind.SEAL
    assert oncebox("cancel", "note-7", "--wait", "--timeout", "0").code == 5


def test_what_is_being_sent_for_the_first_time_is_late_and_not_in_doubt(
    oncebox: Oncebox, sender: Sender
) -> None:
    sender.claim_one(sender.enqueue_one())
    assert oncebox("cancel", "note-7", "--wait", "--timeout", "0").code == 7
    assert oncebox("enqueue", "--operation-id", "b", "--supersedes", "note-7", "--folder=f", "--title=t", "--text=x").code == 4  # fmt: skip


def test_a_cancel_while_our_access_is_lost_asks_for_the_seal(oncebox: Oncebox, sender: Sender) -> None:
    id = sender.enqueue_one()
    for _ in range(4):
        sender.answer(sender.claim_one(id), Outcome.UNAUTHENTICATED)
    assert sender.status().state is State.NEEDS_REVIEW
    ran = oncebox("cancel", "note-7")
    assert (ran.code, "is asked to close its key" in ran.out) == (0, True)


def test_reconcile_prints_how_many_are_asked_about(oncebox: Oncebox, sender: Sender) -> None:
    nothing = oncebox("reconcile")
    assert (nothing.code, nothing.out.startswith("Nothing to ask")) == (0, True)
    unknown(sender, "a")
    unknown(sender, "b")
    ran = oncebox("reconcile", "--json")
    assert (ran.code, ran.json) == (
        0,
        {"asked": 2, "unknown": 2, "access_lost": 0, "id": None, "operation_id": None, "state": None},
    )
    assert len(sender.dispatched()) == 2
    assert "about 2 operations (destination notes)" in oncebox("reconcile", "--destination", "notes").out
    assert oncebox("reconcile", "--destination", "elsewhere", "--json").json["asked"] == 0


@pytest.mark.parametrize(
    ("state", "words"), [("unknown", "asked now"), ("pending", "oncebox retry"), ("saved", "nothing to ask")]
)
def test_reconcile_of_one_says_what_it_did(oncebox: Oncebox, sender: Sender, state: str, words: str) -> None:
    unknown(sender, "another")
    unknown(sender) if state == "unknown" else sender.enqueue_one()
    if state == "saved":
        settle(sender, State.SAVED)
    ran = oncebox("reconcile", "note-7", "--json")
    assert (ran.code, ran.json["state"], ran.json["asked"]) == (0, state, int(state == "unknown"))
    assert words in oncebox("reconcile", "note-7").out
    assert "another" not in {sender.operation(id).operation_id for id in sender.dispatched()}


@pytest.mark.parametrize("command", ["retry", "cancel", "reconcile"])
def test_a_name_that_is_nobodys_or_several_changes_nothing(
    oncebox: Oncebox, sender: Sender, command: str
) -> None:
    assert oncebox(command, "note-7").code == 3
    unknown(sender)
    sender.enqueue(write(), outbox=Outbox("demo", "analyst"))
    before = sender.everything()
    ran = oncebox(command, "note-7", "--json")
    assert (ran.code, ran.error["kind"]) == (2, "ambiguous")
    assert sender.everything() == before
    assert oncebox(command, "note-7", "--principal", "researcher").code == 0
