"""The story that the project begins with: a save whose reply is lost is asked for, and not sent again."""

import json
import signal

from tests.acceptance.town import Town
from tests.acceptance.witness import Witness
from tests.support.polling import eventually


def test_a_save_whose_reply_is_lost_is_asked_for_and_not_sent_again(town: Town) -> None:
    """F60, R46: the timeout reads as unknown; one status query finds the note that the first POST created."""
    lost = town.proxy.swallow_replies(match="POST /v1/notes:batch")
    enqueued = town.oncebox(
        "enqueue",
        "--operation-id",
        "note-7",
        "--folder",
        "drafts",
        "--title",
        "Finding 7",
        "--text",
        "Reef B.",
    )
    assert enqueued.returncode == 0, enqueued.stderr

    with Witness(town, "note-7") as witness:
        eventually(lambda: lost.struck, timeout=20, what="the batch reaches the receiver")
        # With the relay asleep nothing is asked yet: this is the moment between the timeout and the query.
        town.relay.send_signal(signal.SIGSTOP)
        eventually(lambda: town.status("note-7").state == "unknown", timeout=10)
        shown = json.loads(town.oncebox("show", "note-7", "--json").stdout)
        assert [(call["kind"], call["outcome"], call["reason"]) for call in shown["calls"]] == [
            ("send", "unknown", "timeout")
        ]
        assert town.oncebox("status", "note-7").returncode == 5
        town.relay.send_signal(signal.SIGCONT)
        saved = town.wait("note-7")

    assert town.log.conversation("note-7") == ["batch", "status"]
    assert saved.state == "saved"
    assert saved.receipt is not None
    assert town.notes.notes_of("note-7") == [saved.receipt.note["id"]]
    first_reply = json.loads(lost.struck[0].reply_body or b"")["items"][0]["receipt"]["note"]
    assert saved.receipt.note["location"] == first_reply["location"]
    assert witness.states()[-1] == "saved"
    assert set(witness.states()) <= {"pending", "sending", "unknown", "saved"}
