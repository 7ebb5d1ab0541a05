"""Receivers that commit late, answer late, or lie about what they did: a delivery still ends with one note."""

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.exc import ProgrammingError

from oncebox_models.states import State
from oncebox_worker.delivery import Delivered, Delivery
from tests.integration.worker.parties import Sender
from tests.integration.worker.test_delivery import (
    SEND,
    STATUS,
    Run,
    delivery,
    proxy,
    ready,
    run,
    sender,
    settle,
)
from tests.notes.running import RunningService, running
from tests.support.faultproxy import Exchange, FaultProxy
from tests.support.polling import eventually

__all__ = ["delivery", "proxy", "ready", "run", "sender"]  # fixtures

CALL_S = 0.6
HTML = "<html><body><h1>503 Service Unavailable</h1></body></html>"
LIE = json.dumps(
    {
        "type": "urn:oncebox:problem:busy",
        "title": "Busy",
        "status": 503,
        "detail": "Nothing was executed. Send the same request again.",
        "code": "busy",
        "attempt": "not_executed",
        "operation_state": "unknown",
        "retry": {"same_key": True, "new_key": False, "after_s": 0},
        "errors": [],
    }
)


@pytest.fixture
def service(notes_database: str, tmp_path: Path) -> Generator[RunningService]:
    """A note service that lets a write wait in its transaction for longer than the worker waits for it."""
    with running(notes_database, tmp_path, lock_timeout_seconds=15, request_limit_seconds=120) as started:
        started.grant()
        yield started


@pytest.fixture
def impatient(ready: Sender, proxy: FaultProxy, token: str) -> Generator[Delivery]:
    """A worker whose calls are over soon."""
    with ready.delivery(
        proxy.url,
        token,
        call_timeout_s=CALL_S,
        connect_timeout_s=0.5,
        retry_base_s=0.01,
        retry_ceiling_s=0.01,
    ) as made:
        yield made


@contextmanager
def before_its_commit(service: RunningService) -> Generator[None]:
    """A write waits in the middle of its transaction."""
    with service.connect(autocommit=False) as holder:
        holder.execute("LOCK TABLE note_version IN SHARE MODE")
        yield


def test_a_commit_long_after_the_reply_was_lost_is_waited_for(
    ready: Sender, impatient: Delivery, proxy: FaultProxy, service: RunningService
) -> None:
    """F1: the receiver goes on after the caller has gone; asked again and again it says "in progress", which is no
    reason to send: one send in all, and the note that is committed in the end is the one that is found."""
    (id,) = ready.enqueue_named("note-7")
    with before_its_commit(service):
        for _ in range(4):
            assert impatient.deliver("notes", [id]) == Delivered(claimed=1, settled=0, again=1)
            assert ready.status("note-7").state is State.UNKNOWN
            make_due(ready)
        assert service.notes() == 0
    settle(ready, impatient, "note-7")
    assert (ready.status("note-7").state, service.notes()) == (State.SAVED, 1)
    assert ready.calls()[:4] == ["send", "status", "status", "status"]
    assert ready.calls().count("send") == 1


def test_a_packet_that_arrives_long_after_its_caller_has_gone_finds_the_note(
    ready: Sender, impatient: Delivery, proxy: FaultProxy, service: RunningService
) -> None:
    """F1: until then the receiver truly says "not found", which proves nothing: what is sent again has the same key, and
    whichever packet comes second is the first one's replay."""
    (id,) = ready.enqueue_named("note-7")
    late = proxy.hold(1, match=SEND, release_when_full=False)
    assert impatient.deliver("notes", [id]) == Delivered(claimed=1, settled=0, again=1)
    make_due(ready)
    settle(ready, impatient, "note-7")
    late.release()
    first, second = proxy.requests(SEND)
    eventually(lambda: first.status, what="the late packet has its answer")
    assert (first.status, second.status, service.notes()) == (200, 200, 1)
    assert first.reply_body is not None
    assert b'"replayed":true' in first.reply_body
    assert ready.calls() == ["send", "status", "send"]


def test_a_receiver_that_answers_as_late_as_it_can_has_one_call(
    ready: Sender, proxy: FaultProxy, token: str, run: Run, service: RunningService
) -> None:
    """F3: a lease is not renewed, and need not be: a call has one end in time, before its lease's. Until then nobody else
    claims, however often the message comes; afterwards the next one asks."""
    lease_s = 3 * CALL_S
    (id,) = ready.enqueue_named("note-7")
    with ready.delivery(
        proxy.url, token, call_timeout_s=CALL_S, connect_timeout_s=0.5, lease_s=lease_s, retry_base_s=0.01
    ) as slow:
        began = time.monotonic()
        held = proxy.hold_replies(1, match=SEND)
        first = run(slow, [id])
        held.wait_until_full()
        looks = 0
        while not slow.deliver("notes", [id]).claimed:
            looks += 1
        assert looks > 5
        assert time.monotonic() - began < lease_s
        assert first.result() == Delivered(claimed=1, settled=0, again=1)
        make_due(ready)
        settle(ready, slow, "note-7")
    assert ready.calls() == ["send", "status"]
    ended = "select max(finished_at) filter (where kind = 'send') <= max(started_at) from oncebox.call"
    assert ready.scalar(ended), "asked when the first had said how it ended, and not before"
    assert (len(proxy.requests(SEND)), service.notes()) == (1, 1)


@pytest.mark.parametrize(
    ("reply", "calls"), [(HTML, ["send", "status"]), (LIE, ["send", "send"])], ids=["a page", "a lie"]
)
def test_a_503_for_what_was_committed_makes_no_second_note(
    ready: Sender,
    delivery: Delivery,
    proxy: FaultProxy,
    service: RunningService,
    reply: str,
    calls: list[str],
) -> None:
    """R52: whether the 503 says nothing or even "not executed", what is sent again is the same operation."""
    (id,) = ready.enqueue_named("note-7")
    kind = "text/html" if reply is HTML else "application/problem+json"
    head = f"HTTP/1.1 503 Busy\r\nContent-Type: {kind}\r\nContent-Length: {len(reply)}\r\n\r\n"
    proxy.answer(f"{head}{reply}".encode(), match=SEND)
    proxy.copy_requests_late(0, match=SEND)
    assert delivery.deliver("notes", [id]) == Delivered(claimed=1, settled=0, again=1)
    eventually(lambda: service.notes() == 1, what="the receiver has committed what it denied")
    assert ready.status("note-7").state in (State.UNKNOWN, State.RETRYING)
    make_due(ready)
    settle(ready, delivery, "note-7")
    assert (ready.status("note-7").state, service.notes()) == (State.SAVED, 1)
    assert ready.calls() == calls


def test_every_request_upstream_names_the_key_and_the_same_bytes(
    ready: Sender, delivery: Delivery, proxy: FaultProxy, service: RunningService
) -> None:
    """F30, F60, R45, R47: the key that was committed is in every request, whatever its kind and however often it is
    tried; each is a call of its own, and the receipt echoes the key."""
    ready.enqueue_named("note-7")
    proxy.lose_requests(1, match=SEND, then="reset")
    delivery.deliver("notes", [ready.status("note-7").id])
    proxy.lose_requests(1, match=STATUS, then="reset")
    settle(ready, delivery, "note-7")
    requests = proxy.requests()
    assert {exchange.path for exchange in requests} == {"/v1/notes:batch", "/v1/operations:status"}
    assert [key for exchange in requests for key in keys(exchange)] == ["note-7"] * len(requests)
    assert len({exchange.headers["call-id"] for exchange in requests}) == len(requests) >= 4
    sent = {exchange.body.partition(b'"arguments"')[2] for exchange in proxy.requests(SEND)}
    assert (len(proxy.requests(SEND)), len(sent), service.notes()) == (2, 1, 1)
    receipt = ready.status("note-7").receipt
    assert receipt is not None
    assert receipt.operation_id == "note-7"


def test_a_retry_is_a_row_before_anybody_hears_of_it(
    ready: Sender, delivery: Delivery, proxy: FaultProxy
) -> None:
    """F20: there is no broker at all here. What comes next was decided, and is committed, when the call's end was written
    down: it is due by the database's clock, for any relay."""
    ids = ready.enqueue_named("asked", "turned-away")
    proxy.swallow_replies(1, match=SEND, then="reset")
    delivery.deliver("notes", ids[:1])
    proxy.refuse()
    delivery.deliver("notes", ids[1:])
    rows = ready.rows(
        "select next_call, retries, ready_at <= now() + interval '1 s' as soon, dispatched_at, lease_until"
        " from oncebox.outbox_entry e join oncebox.operation o using (id) order by o.operation_id"
    )
    assert [tuple(row) for row in rows] == [("status", 1, True, None, None), ("send", 1, True, None, None)]


def test_the_answer_that_cannot_be_written_down_for_one_harms_no_other(
    ready: Sender, delivery: Delivery, service: RunningService
) -> None:
    """F57: a row whose end cannot be stored is claimed alone from its third claim on, and then set aside; the other one
    of its chunk is saved."""
    bad, good = ready.enqueue_named("bad", "good")
    ready.change(
        "create function refuse() returns trigger language plpgsql as $$ begin raise 'no room for it'; end $$"
    )
    ready.change(
        "create trigger refuse before update on oncebox.operation for each row"
        " when (new.final = 'saved' and new.operation_id = 'bad') execute function refuse()"
    )
    for chunk in ([bad, good], [bad, good]):
        with pytest.raises(ProgrammingError, match="no room for it"):
            delivery.deliver("notes", chunk)
        lapse(ready)
    assert delivery.deliver("notes", [good]).settled == 1
    for _ in range(3):
        with pytest.raises(ProgrammingError, match="no room for it"):
            delivery.deliver("notes", [bad])
        lapse(ready)
    with ready.relay(broker_url="amqp://127.0.0.1:9") as relay:
        assert relay._upkeep() == (0, 1)
    assert (ready.status("good").state, ready.status("bad").state) == (State.SAVED, State.NEEDS_REVIEW)
    assert service.notes() == 2


def keys(exchange: Exchange) -> list[str]:
    """The keys that a request names."""
    body = json.loads(exchange.body)
    return [item["operation_id"] for item in body.get("items") or body.get("operations")]


def make_due(sender: Sender) -> None:
    """Turn the clock past every back-off."""
    sender.change("update oncebox.outbox_entry set ready_at = now()")


def lapse(sender: Sender) -> None:
    """Turn the clock past every lease."""
    sender.change(
        "update oncebox.outbox_entry set lease_until = now() - interval '1 s' where call_id is not null"
    )
