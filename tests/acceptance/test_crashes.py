"""Processes that are killed in the middle of their work."""

import signal
import sys

import pytest

from tests.acceptance.town import Town
from tests.acceptance.witness import Witness
from tests.support import processes
from tests.support.databases import ROOT
from tests.support.polling import eventually


@pytest.mark.parametrize(("when", "notes"), [("after", 1), ("before", 0)])
def test_kill_9_of_the_agent_beside_its_commit(town: Town, when: str, notes: int) -> None:
    """F54, R48: right after the commit the operation is delivered; right before it nothing is left, anywhere. The step
    is run again, as by a framework that has no checkpoint of it, and dies again: it is the same operation."""
    for _ in range(2):
        agent = processes.run(
            [sys.executable, "-m", "tests.acceptance.agent", f"dies-{when}-commit", f"dies-{when}"],
            env=town.environment,
            cwd=ROOT,
        )
        assert agent.returncode == -signal.SIGKILL, agent.stderr
    # What was committed is behind us when what was committed later is saved and nothing is left to do.
    town.save(f"lives-{when}")
    assert town.wait(f"lives-{when}").state == "saved"
    town.drain()
    kept = "SELECT count(*) FROM oncebox.operation WHERE operation_id = %s AND final = 'saved'"
    assert town.sender.value(kept, f"dies-{when}") == notes
    assert (
        town.sender.value("SELECT count(*) FROM oncebox.operation WHERE operation_id = %s", f"dies-{when}")
        == notes
    )
    assert len(town.notes.notes_of(f"dies-{when}")) == notes


def test_a_worker_killed_between_claim_and_settle_leaves_one_note(town: Town) -> None:
    """F1, F21, F28, F31: the worker dies while its request is still on its way; the lapsed lease reads as unknown
    with no process alive; the redelivered message finds nothing to claim before; the next worker asks, sends
    again under the same key, and the late first packet then finds the note."""
    first = town.worker
    held = town.proxy.hold(1, match="POST /v1/notes:batch", release_when_full=False)
    town.save("killed-7")
    with Witness(town, "killed-7") as witness:
        held.wait_until_full()
        first.kill()
        assert town.status("killed-7").state == "sending"
        # RabbitMQ hands the message of the dead worker to the next one at once: the lease still holds.
        (second,) = town.start_workers()
        assert town.status("killed-7").state == "sending"
        second.send_signal(signal.SIGSTOP)
        # A lease outlasts a call by 20 s: here the clock is moved instead of waited for.
        assert town.sender.lapse_leases() == 1
        assert town.status("killed-7").state == "unknown"
        second.send_signal(signal.SIGCONT)
        saved = town.wait("killed-7")
        held.release()
        (late, _) = [e for e in town.proxy.requests("POST /v1/notes:batch") if b"killed-7" in e.body]
        eventually(lambda: late.status, timeout=10, what="the late packet has its answer")

    assert saved.state == "saved"
    assert saved.receipt is not None
    assert town.notes.notes_of("killed-7") == [saved.receipt.note["id"]]
    assert late.reply_body is not None
    assert b'"replayed":true' in late.reply_body
    assert [(kind, outcome) for kind, outcome, _ in town.sender.outcomes("killed-7")] == [
        ("send", "unknown"),
        ("status", "not_found"),
        ("send", "receipt"),
    ]
    assert witness.states()[-1] == "saved"
    assert town.sender.violations() == []
