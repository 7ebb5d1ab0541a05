"""An operation that ends every worker that touches it."""

from oncebox_models.states import State
from tests.integration.worker.parties import Sender
from tests.notes.running import RunningService
from tests.proof.cases.conftest import StartOdd
from tests.support.polling import eventually

POISON_CLAIMS = 5


def test_what_kills_every_worker_is_set_aside_after_five_and_takes_nobody_along(
    sender: Sender, service: RunningService, token: str, start_odd: StartOdd
) -> None:
    """F13, C39, C40: the child dies, Celery gives its message back, and it finds a live lease: no endless loop, one death a
    lease, counted on the operation. From the third on it is alone; after the fifth a person has it; the others are saved."""
    worker = start_odd("kills_itself", sender.environment(service.url, token), "-P", "prefork", "-c", "2")
    sender.enqueue_named("poison", *(f"good-{number}" for number in range(5)))
    claims = "select e.claims from oncebox.outbox_entry e join oncebox.operation o using (id) where o.operation_id = 'poison'"
    with sender.relay() as relay:
        for death in range(1, POISON_CLAIMS + 1):
            before = worker.log_text().count('"delivered"')
            eventually(lambda: relay.run_once().published, timeout=30, what="it is handed over")
            eventually(lambda n=death: sender.scalar(claims) == n, timeout=20, what=f"claim {death}")
            worker.wait_for_log("exited with 'signal 9", count=death)
            worker.wait_for_log('"delivered"', count=before + 2, timeout=30)
            eventually(lambda: sender.messages() == 0, what="the message that came back led to nothing")
            # Those that it was claimed with died with it, twice; then it is on its own.
            sender.change(
                "update oncebox.outbox_entry e set lease_until = now() - interval '1 s' from oncebox.operation o"
                " where o.id = e.id and e.call_id is not null and (:death <= 2 or o.operation_id = 'poison')",
                death=death,
            )
        sender.wait_until("saved", *(f"good-{number}" for number in range(5)))
        eventually(lambda: relay._upkeep()[1] == 1, timeout=10, what="the relay sets it aside")
        assert relay.run_once().published == 0
    status = sender.status("poison")
    assert (status.state, status.reason) == (State.NEEDS_REVIEW, "poison")
    assert worker.log_text().count("exited with 'signal 9") == POISON_CLAIMS
    assert (service.notes(), sender.messages(), sender.messages("dead")) == (5, 0, 0)
    assert worker.terminate() == 0
