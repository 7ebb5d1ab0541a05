"""The image as a Celery worker on RabbitMQ 4: killed in the middle of a delivery, and under a broker that restarts."""

import psycopg
import pytest
from pytest_celery import CeleryTestBroker, CeleryTestWorker

from tests.celery.parties import Databases, Relay, waiting_messages
from tests.docker.agent import Agent
from tests.support.polling import eventually

pytestmark = pytest.mark.timeout(480)  # the first test waits for the image

OPERATIONS = 300


def test_kill_9_between_claim_and_settle_is_redelivered_and_makes_one_note(
    worker: CeleryTestWorker, broker: CeleryTestBroker, relay: Relay, databases: Databases
) -> None:
    """C25, C27: RabbitMQ 4 takes our queues and our consumers' limits. The broker gives the message to the next worker, and
    the receiver's key makes one note of two deliveries."""
    with psycopg.connect(databases.postgres.url("notes")) as blocking:
        # The note service waits in the middle of its transaction until this connection ends.
        blocking.execute("LOCK TABLE note_version IN SHARE MODE")
        Agent(databases.postgres.url("oncebox"), rate=1).save_up_to(1)
        eventually(lambda: databases.notes.waiting(relation="note_version"), what="the write is under way")
        assert databases.sender.leased() == 1
        # Without a relay it is the broker's redelivery, and nothing else, that brings the message back.
        relay.kill("SIGKILL")
        assert waiting_messages(broker) == 0
        worker.kill()
        eventually(lambda: waiting_messages(broker) == 1, what="the message is given back")
    databases.sender.lapse_leases()

    worker.restart()
    eventually(
        lambda: databases.sender.states() == {"saved": 1},
        timeout=40,
        what=lambda: f"{databases.sender.states()}\n{worker.logs()}",
    )
    assert len(databases.notes.notes_of("note-1")) == databases.notes.count() == 1
    kinds = [kind for (kind,) in databases.sender.rows("SELECT kind FROM oncebox.call ORDER BY started_at")]
    assert kinds[:2] == ["send", "status"]
    assert databases.sender.violations() == []


def test_a_broker_that_restarts_under_load_loses_nothing(
    worker: CeleryTestWorker, broker: CeleryTestBroker, relay: Relay, databases: Databases
) -> None:
    """C24: unacknowledged messages come back, the relay publishes what the broker did not take, each note once."""
    with Agent(databases.postgres.url("oncebox"), rate=40) as agent:
        eventually(lambda: databases.sender.states().get("saved", 0) > 20, timeout=20, what="load")
        before = agent.committed
        broker.restart()
        assert agent.committed > before
        down_for = agent.committed - before
        eventually(
            lambda: databases.sender.states().get("saved", 0) > agent.committed - 20,
            timeout=90,
            what=lambda: f"{databases.sender.states()}\n{worker.logs()[-4000:]}",
        )
    agent.save_up_to(OPERATIONS)
    eventually(lambda: databases.sender.live() == 0, timeout=60, what=lambda: f"{databases.sender.states()}")
    print(f"{down_for} operations were enqueued while the broker was down")
    assert databases.sender.states() == {"saved": agent.committed}
    assert databases.notes.count() == agent.committed
    assert databases.sender.violations() == []
