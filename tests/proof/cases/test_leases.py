"""Leases that end by the clock alone: nobody moves it here."""

import signal
import time
from pathlib import Path

from oncebox_models.states import State
from tests.integration.worker import parties
from tests.integration.worker.parties import Sender
from tests.notes.running import RunningService
from tests.support.faultproxy import FaultProxy
from tests.support.polling import eventually
from tests.support.processes import Processes, RunningProcess

CHUNKS, CHUNK = 3, 100
CALL_S, LEASE_S = 3.5, 23.5


def test_what_a_dead_and_a_frozen_worker_held_is_delivered_after_their_leases(
    sender: Sender, service: RunningService, receiver: FaultProxy, token: str, processes: Processes
) -> None:
    """F10, F28: 300 operations are claimed and have their notes; one of the two workers is killed, the other stopped by
    SIGSTOP. A third finds them by the clock, within two leases, asks, and sends nothing. The stopped one then goes on: what
    it writes down changes nothing, and it is sound."""
    environment = sender.environment(
        receiver.url,
        token,
        ONCEBOX_CALL_TIMEOUT_S=str(CALL_S),
        ONCEBOX_LEASE_S=str(LEASE_S),
        ONCEBOX_CHUNK=str(CHUNK),
        ONCEBOX_CONCURRENCY="2",
        ONCEBOX_REDISPATCH_S="1",
        ONCEBOX_RETRY_BASE_S="0.1",
    )
    workers = {w.pid: w for w in (parties.start_worker(processes, environment) for _ in range(2))}
    held = receiver.hold_replies(CHUNKS, match="POST /v1/notes:batch")
    ids = [f"note-{number}" for number in range(CHUNKS * CHUNK)]
    sender.enqueue_named(*ids)
    with sender.running_relay(redispatch_s=1, chunk=CHUNK):
        held.wait_until_full(60)
        began = time.monotonic()
        frozen, killed = holders(sender, workers)
        frozen.send_signal(signal.SIGSTOP)
        stat = Path(f"/proc/{frozen.pid}/stat")
        eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", what="it stands still")
        killed.kill()
        held.release()
        assert sender.leased() == len(ids)
        parties.start_worker(processes, environment)
        eventually(
            lambda: sender.scalar("select count(*) from oncebox.outbox_entry") == 0,
            timeout=2 * LEASE_S,
            interval=0.2,
            what="all are settled",
        )
        assert LEASE_S - 5 < time.monotonic() - began < 2 * LEASE_S
        assert set(sender.calls()) == {"send", "status"}
        assert sender.calls().count("send") == CHUNKS

        before = sender.rows(
            "select id, final, receipt, settled_at, settled_call from oncebox.operation order by id"
        )
        frozen.send_signal(signal.SIGCONT)
        frozen.wait_for_log('"call_finished"', timeout=30)
        sender.enqueue_named("next")
        sender.wait_until("saved", "next")
        after = sender.rows(
            "select id, final, receipt, settled_at, settled_call from oncebox.operation where id = any(:ids)"
            " order by id",
            ids=[row.id for row in before],
        )
        assert after == before
    assert sender.scalar("select count(*) from oncebox.violation") == 0
    assert service.notes() == len(ids) + 1
    assert sender.status(ids[0]).state is State.SAVED
    assert frozen.terminate(timeout=30) == 0


def holders(sender: Sender, workers: dict[int, RunningProcess]) -> tuple[RunningProcess, RunningProcess]:
    """Who holds at least one call, and the other, who may."""
    rows = sender.rows("select distinct split_part(worker, ':', 2)::int as pid from oncebox.call")
    (first, *_) = [workers[row.pid] for row in rows]
    (other,) = [worker for worker in workers.values() if worker is not first]
    return first, other
