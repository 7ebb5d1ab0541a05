"""Messages that the broker set aside: the relay takes their stamps back, and nothing is lost or spent."""

import pytest

from oncebox_outbox import claiming
from oncebox_outbox.policy import Policy
from oncebox_worker import relay as relay_module
from oncebox_worker.messages import Chunk
from oncebox_worker.relay import Pass
from oncebox_worker.task_messages import task_message
from tests.integration.worker import parties
from tests.integration.worker.parties import NOWHERE, Sender
from tests.notes.running import RunningService
from tests.support.polling import eventually
from tests.support.processes import Processes
from tests.support.tcpproxy import TcpProxy


@pytest.fixture
def always_upkeep(monkeypatch: pytest.MonkeyPatch) -> None:
    """The relay looks after dead letters in every pass."""
    monkeypatch.setattr(relay_module, "_UPKEEP_S", 0.0)


@pytest.fixture
def frequent_upkeep(monkeypatch: pytest.MonkeyPatch) -> None:
    """The relay looks after dead letters more often than it would."""
    monkeypatch.setattr(relay_module, "_UPKEEP_S", 0.2)


@pytest.mark.usefixtures("always_upkeep")
def test_a_message_redelivered_too_often_gives_its_entries_back(seen: Sender) -> None:
    """Beyond the delivery limit the broker sets it aside; the relay hands the entries over again at once."""
    ids = seen.enqueue_named("a", "b")
    with seen.relay() as relay:
        assert relay.run_once() == Pass(published=2)
        deliveries = 0
        with seen.broker() as channel:
            while message := channel.basic_get(f"{seen.prefix}.deliver"):
                deliveries += 1
                channel.basic_reject(message.delivery_tag, requeue=True)
        assert deliveries == 6
        eventually(lambda: seen.messages("dead") == 1, what="it is set aside")
        assert relay.run_once() == Pass(published=2)
    assert seen.messages("dead") == 0
    assert seen.taken_ids() == [ids]
    assert seen.attempts() == 0


@pytest.mark.usefixtures("always_upkeep")
def test_an_old_dead_message_does_not_take_a_newer_stamp_back(seen: Sender) -> None:
    """Only the stamp that the message names is taken back: the entry may be on its way again."""
    seen.enqueue_named("a")
    with seen.relay() as relay:
        assert relay.run_once() == Pass(published=1)
        with seen.broker() as channel:
            message = channel.basic_get(f"{seen.prefix}.deliver")
            seen.change("update oncebox.outbox_entry set dispatched_at = null")
            assert relay.run_once() == Pass(published=1)
            channel.basic_reject(message.delivery_tag, requeue=False)
        eventually(lambda: seen.messages("dead") == 1, what="it is set aside")
        assert relay.run_once() == Pass()
    assert seen.messages("dead") == 0


@pytest.mark.usefixtures("always_upkeep")
def test_a_dead_message_of_settled_operations_is_only_removed(seen: Sender) -> None:
    """Nothing is left to hand over; the dead letter is gone all the same."""
    (id,) = seen.enqueue_named("a")
    with seen.relay() as relay:
        assert relay.run_once() == Pass(published=1)
        seen.change("delete from oncebox.outbox_entry where id = :id", id=id)
        with seen.broker() as channel:
            channel.basic_reject(channel.basic_get(f"{seen.prefix}.deliver").delivery_tag, requeue=False)
        eventually(lambda: seen.messages("dead") == 1, what="it is set aside")
        assert relay.run_once() == Pass()
    assert seen.messages("dead") == 0


@pytest.mark.usefixtures("frequent_upkeep")
def test_what_one_worker_does_not_know_waits_for_one_that_does(
    sender: Sender, service: RunningService, token: str, processes: Processes
) -> None:
    """F18, F19: a fleet without this destination rejects; nothing is discarded or spent, and the right one delivers."""
    sender.see_receiver()
    sender.change("update oncebox.destination set receiver = null where name = 'notes'")
    stranger = parties.start_celery(
        processes,
        sender.environment(NOWHERE, ONCEBOX_DESTINATION="elsewhere"),
        "-P",
        "threads",
        name="stranger",
    )
    (id,) = sender.enqueue_named("note-7")
    with sender.running_relay():
        stranger.wait_for_log('"destination_unknown"', count=2)
        assert sender.attempts() == 0
        assert sender.status("note-7").state == "pending"
        parties.start_celery(processes, sender.environment(service.url, token), "-P", "threads")
        sender.wait_until("saved", "note-7")
    assert service.notes() == 1
    assert sender.messages("dead") == 0
    assert id
    assert {"receiver_never_seen", "destination_unknown"} <= set(parties.events(stranger))


@pytest.mark.usefixtures("frequent_upkeep")
def test_a_worker_without_its_database_gives_the_chunk_back(
    sender: Sender,
    service: RunningService,
    token: str,
    processes: Processes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F20, F25: the worker cannot claim: the message is set aside, the stamp taken back, and nothing is spent.

    The same worker then meets messages that are not ours, and outlives them; F55: one that names its task by another
    version's name leads to a note all the same.
    """
    caplog.set_level("INFO", "oncebox_worker")
    with TcpProxy(sender.database_url) as proxy:
        environment = sender.environment(service.url, token)
        environment["ONCEBOX_DATABASE_URL"] = parties.through(proxy, sender.database_url)
        worker = parties.start_celery(processes, environment, "-P", "threads")
        with sender.running_relay():
            proxy.refuse()
            sender.enqueue_named("note-7")
            worker.wait_for_log('"database_unreachable".*"during": "deliver"')
            eventually(lambda: "dead_message" in said(caplog), what="the relay looked at the dead letter")
            assert sender.attempts() == 0
            proxy.pass_through()
            sender.wait_until("saved", "note-7")
            assert service.notes() == 1

            publish_raw(sender, '[[{"v": 9, "ids": "?"}], {}, {}]', task="oncebox.deliver")
            worker.wait_for_log('"message_unreadable"')
            publish_raw(sender, "[[], {}, {}]", task="oncebox.nobody")
            publish_raw(sender, "{broken", task="oncebox.deliver")
            eventually(lambda: unreadable(caplog) == 2, what="the relay met both of them, and took them away")
            assert sender.messages("dead") == 0
            (id,) = sender.enqueue_named("note-8")
            sender.wait_until("saved", "note-8")
        (id,) = sender.enqueue_named("renamed")
        with sender.relay() as relay:
            (due,) = claiming.dispatch(sender.worker, Policy(), low_mark=None, limit=1)
            chunk = Chunk(destination="notes", ids=(id,), dispatched_at=due.dispatched_at)
            publish_raw(sender, task_message(chunk).body, task="oncebox.renamed")
            eventually(lambda: sender.messages("dead") == 1, what="the worker knows no such task")
            assert sender.stamped() == {id}
            eventually(lambda: relay.run_once().published == 1, what="the relay hands it over again")
        sender.wait_until("saved", "renamed")
        assert service.notes() == 3
    parties.log_lines(worker)


def publish_raw(sender: Sender, body: str, *, task: str) -> None:
    """A task message as Celery's protocol has it, with any body."""
    headers = {"lang": "py", "task": task, "id": "x-1", "root_id": "x-1", "parent_id": None, "retries": 0}
    headers |= {"argsrepr": "-", "kwargsrepr": "-", "eta": None, "expires": None, "group": None}
    with sender.broker() as channel:
        message = channel.prepare_message(
            body,
            content_type="application/json",
            content_encoding="utf-8",
            headers=headers,
            properties={"correlation_id": "x-1"},
        )
        channel.basic_publish(message, exchange=f"{sender.prefix}.deliver", routing_key="deliver")


def said(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(record.message for record in caplog.records)


def unreadable(caplog: pytest.LogCaptureFixture) -> int:
    """Dead messages that the relay could not read."""
    fields = [getattr(record, "fields", {}) for record in caplog.records]
    return sum(1 for field in fields if field.get("readable") is False)
