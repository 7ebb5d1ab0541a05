"""Answers that look like an end and are none: after each of them a packet is still on its way, and arrives.

A real note service behind a proxy. Whatever is said of the operation once it is settled must be what the notes say.
"""

import json
import socket
from collections.abc import Generator
from http.client import HTTPResponse
from typing import Any, Final
from uuid import UUID

import pytest
from sqlalchemy.orm import Session

from oncebox_models.states import State
from oncebox_outbox.settling import settle_unsent
from oncebox_worker.delivery import Delivery
from tests.integration.worker import parties
from tests.integration.worker.parties import OUTBOX, Sender
from tests.notes.running import RunningService
from tests.support.faultproxy import Exchange, FaultProxy
from tests.support.polling import eventually

SEND: Final = "POST /v1/notes:batch"
STATUS: Final = "POST /v1/operations:status"


@pytest.fixture
def sender(sender_database: str) -> Generator[Sender]:
    """A sender that has seen the note service. A delivery needs no broker."""
    with parties.sender(sender_database, "amqp://nowhere", "nothing") as made:
        made.see_receiver(receiver="the-note-service")
        yield made


@pytest.fixture
def proxy(service: RunningService) -> Generator[FaultProxy]:
    """The network between worker and note service."""
    with FaultProxy(service.url) as made:
        yield made


@pytest.fixture
def delivery(sender: Sender, proxy: FaultProxy, token: str) -> Generator[Delivery]:
    """What a worker works with; its calls go through the proxy."""
    with sender.delivery(proxy.url, token, retry_base_s=0.01, retry_ceiling_s=0.01) as made:
        yield made


@pytest.fixture
def note(sender: Sender) -> UUID:
    """The operation `note-7`, enqueued."""
    (id,) = sender.enqueue_named("note-7")
    return id


def arrives(service: RunningService, packet: Exchange) -> int:
    """The packet reaches the note service now; the status of its one item."""
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(packet.raw)
        reply = HTTPResponse(connection)
        reply.begin()
        (item,) = json.loads(reply.read())["items"]
    return int(item["status"])


def ask(sender: Sender, delivery: Delivery, note: UUID) -> None:
    """Deliver until the receiver is asked, or cannot be: put off by the retry's jitter, it is not due at once."""

    def asked() -> bool:
        delivery.deliver("notes", [note])
        return sender.calls()[1:2] == ["status"]

    eventually(asked, what="the receiver is asked")


def move_on(sender: Sender, delivery: Delivery, note: UUID) -> None:
    """Deliver until it is settled, as the relay's hints would."""

    def settled() -> bool:
        delivery.deliver("notes", [note])
        return sender.status("note-7").final

    eventually(settled, what="note-7 is settled")


def is_true(sender: Sender, service: RunningService) -> bool:
    """What is said of the operation is what the notes say."""
    return (sender.status("note-7").state is State.SAVED) == (service.notes() == 1)


def test_a_refusal_is_none_before_the_key_is_sealed(
    sender: Sender, delivery: Delivery, proxy: FaultProxy, service: RunningService, note: UUID
) -> None:
    """A copy of the refused packet arrives when the grant is there."""
    service.revoke()
    move_on(sender, delivery, note)
    assert sender.status("note-7").state is State.REFUSED
    service.grant()
    arrives(service, proxy.requests(SEND)[0])
    assert is_true(sender, service)


def test_not_found_is_none_while_a_packet_may_be_on_its_way(
    sender: Sender, delivery: Delivery, proxy: FaultProxy, service: RunningService, note: UUID
) -> None:
    """The receiver has not heard of the key, because the packet is late."""
    proxy.lose_requests(1, match=SEND, then="reset")
    delivery.deliver("notes", [note])
    ask(sender, delivery, note)
    arrives(service, proxy.requests(SEND)[0])
    move_on(sender, delivery, note)
    assert is_true(sender, service)


def test_in_progress_is_none_since_another_copy_is_being_executed(
    sender: Sender, delivery: Delivery, proxy: FaultProxy, service: RunningService, note: UUID
) -> None:
    """409: the first copy of the packet holds the key, and makes the note."""
    with service.held_key("note-7"):
        delivery.deliver("notes", [note])
    arrives(service, proxy.requests(SEND)[0])
    move_on(sender, delivery, note)
    assert is_true(sender, service)


def test_gone_is_none_since_a_clock_may_step_back(
    sender: Sender, delivery: Delivery, proxy: FaultProxy, service: RunningService, note: UUID
) -> None:
    """410 from a receiver whose clock was ahead; then a copy of the packet arrives in time."""
    gone = {"type": "about:blank", "title": "Gone", "status": 410, "detail": "too late"}
    gone |= {"code": "operation_expired", "attempt": "not_executed", "operation_state": "not_found"}
    proxy.answer(batch_of_one({"operation_id": "note-7", "status": 410, "problem": gone}), match=SEND)
    move_on(sender, delivery, note)
    arrives(service, proxy.requests(SEND)[0])
    assert is_true(sender, service)


def test_a_passed_deadline_is_none_once_something_was_sent(
    sender: Sender, delivery: Delivery, proxy: FaultProxy, service: RunningService, note: UUID
) -> None:
    """The sender's clock says that it is over; the packet on its way is admitted all the same."""
    proxy.lose_requests(1, match=SEND, then="reset")
    delivery.deliver("notes", [note])
    for table in ("operation", "outbox_entry"):
        sender.change(f"update oncebox.{table} set deadline = now() - interval '1 s'")
    settle_unsent(sender.worker, limit=10)
    eventually(lambda: sender.status("note-7").final or delivery.deliver("notes", [note]).settled)
    assert sender.status("note-7").state is State.NOT_SAVED
    arrives(service, proxy.requests(SEND)[0])
    assert is_true(sender, service)


def test_a_cancel_is_none_once_something_was_sent(
    sender: Sender, delivery: Delivery, proxy: FaultProxy, service: RunningService, note: UUID
) -> None:
    """It only asks for the seal, which finds the note that nobody had heard of."""
    proxy.swallow_replies(1, match=SEND, then="reset")
    delivery.deliver("notes", [note])
    cancel(sender)
    move_on(sender, delivery, note)
    assert is_true(sender, service)


def test_not_sent_is_none_after_an_earlier_call_of_unknown_outcome(
    sender: Sender, delivery: Delivery, proxy: FaultProxy, service: RunningService, note: UUID
) -> None:
    """The question was not sent. That says nothing of the note that an earlier call may have made."""
    proxy.swallow_replies(1, match=SEND, then="reset")
    delivery.deliver("notes", [note])
    proxy.refuse()
    ask(sender, delivery, note)
    cancel(sender)
    proxy.pass_through()
    move_on(sender, delivery, note)
    assert is_true(sender, service)


def cancel(sender: Sender) -> None:
    with Session(sender.agent) as session, session.begin():
        OUTBOX.cancel(session, "note-7")


def batch_of_one(item: dict[str, Any]) -> bytes:
    """The bytes of a whole answer to a batch."""
    body = json.dumps({"items": [item]}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
