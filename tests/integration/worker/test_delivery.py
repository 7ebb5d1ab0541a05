"""Delivering chunks in one process: real claims, a real note service behind a proxy, real settling."""

import threading
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

import pytest
from pydantic import SecretStr
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from oncebox_destinations.note_service import NoteService
from oncebox_destinations.settings import NoteServiceSettings
from oncebox_models.states import State
from oncebox_worker import delivery as delivery_module
from oncebox_worker.call_loop import CallLoop
from oncebox_worker.delivery import Delivered, Delivery
from tests.integration.worker import parties
from tests.integration.worker.parties import OUTBOX, Sender, through, write
from tests.notes.running import RunningService
from tests.support.faultproxy import FaultProxy, Rule
from tests.support.polling import eventually
from tests.support.tcpproxy import TcpProxy

Result = TypeVar("Result")
SEND = "POST /v1/notes:batch"
STATUS = "POST /v1/operations:status"
SEAL = "POST /v1/operations:seal"


@pytest.fixture
def sender(sender_database: str) -> Generator[Sender]:
    """A delivery needs no broker."""
    with parties.sender(sender_database, "amqp://nowhere", "nothing") as made:
        yield made


@pytest.fixture
def proxy(service: RunningService) -> Generator[FaultProxy]:
    """The network between worker and note service."""
    with FaultProxy(service.url) as made:
        yield made


@pytest.fixture
def ready(sender: Sender, service: RunningService) -> Sender:
    """A sender that has seen the note service."""
    sender.see_receiver(receiver="the-note-service")
    return sender


@pytest.fixture
def delivery(ready: Sender, proxy: FaultProxy, token: str) -> Generator[Delivery]:
    """What a worker works with; its calls go through the proxy."""
    with ready.delivery(proxy.url, token, call_timeout_s=5, retry_base_s=0.01, retry_ceiling_s=0.01) as made:
        yield made


Run = Callable[[Delivery, Sequence[UUID]], Future[Delivered]]


@pytest.fixture
def run() -> Generator[Run]:
    """Runs a delivery at the side; the future holds its result."""
    with ThreadPoolExecutor(4) as pool:
        yield lambda delivery, ids: pool.submit(delivery.deliver, "notes", ids)


def test_a_chunk_is_sent_once_and_settled(ready: Sender, delivery: Delivery, service: RunningService) -> None:
    """One call for all, one note each, and a second message about them does nothing."""
    ids = ready.enqueue_named("a", "b", "c")
    assert delivery.deliver("notes", ids) == Delivered(claimed=3, settled=3, again=0)
    assert delivery.deliver("notes", ids) == Delivered(claimed=0, settled=0, again=0)
    assert ready.calls() == ["send"]
    assert service.notes() == 3
    assert ready.status("a").state is State.SAVED


def test_the_same_message_at_two_workers_at_once_is_one_call(
    ready: Sender, delivery: Delivery, proxy: FaultProxy, run: Run
) -> None:
    """F15, C9, C10: a copy of a message, and one more, find a live claim and go without effect."""
    ids = ready.enqueue_named("a", "b")
    held = proxy.hold(1, release_when_full=False)
    first = run(delivery, ids)
    held.wait_until_full()
    assert [delivery.deliver("notes", ids) for _ in range(2)] == [Delivered(0, 0, 0)] * 2
    held.release()
    assert first.result(20).settled == 2
    assert len(proxy.requests(SEND)) == 1


def test_a_refusal_is_sealed_in_the_same_task(
    ready: Sender, delivery: Delivery, service: RunningService
) -> None:
    """Rounds: what was refused is due at once, so the task seals it; its neighbour is saved."""
    ids = ready.enqueue(write("a"), write("secret", folder="secret"))
    assert delivery.deliver("notes", ids) == Delivered(claimed=3, settled=2, again=1)
    assert ready.calls() == ["send", "seal"]
    refused = ready.status("secret")
    assert (refused.state, refused.reason) == (State.REFUSED, "folder_not_writable")
    assert ready.status("a").state is State.SAVED
    assert service.notes() == 1


def test_an_unknown_outcome_is_asked_and_never_sent_again_when_the_note_is_there(
    ready: Sender, delivery: Delivery, proxy: FaultProxy, service: RunningService
) -> None:
    """F60, R46: the reply was lost; a status query brings the receipt of the note that is there."""
    ids = ready.enqueue_named("note-7")
    lost = proxy.swallow_replies(1, match=SEND, then="reset")
    assert delivery.deliver("notes", ids) == Delivered(claimed=1, settled=0, again=1)
    assert ready.status("note-7").state is State.UNKNOWN
    assert lost.struck[0].forwarded == 1
    settle(ready, delivery, "note-7")
    assert [exchange.path for exchange in proxy.requests()] == ["/v1/notes:batch", "/v1/operations:status"]
    assert service.notes() == 1


def test_a_request_that_was_lost_is_sent_again_under_the_same_key(
    ready: Sender, delivery: Delivery, proxy: FaultProxy, service: RunningService
) -> None:
    """After "not found", which proves nothing, the same key and bytes go out again."""
    ids = ready.enqueue_named("note-7")
    proxy.lose_requests(1, match=SEND, then="reset")
    delivery.deliver("notes", ids)
    settle(ready, delivery, "note-7")
    assert ready.calls() == ["send", "status", "send"]
    first, second = proxy.requests(SEND)
    assert first.body.partition(b'"arguments"')[2] == second.body.partition(b'"arguments"')[2]
    assert service.notes() == 1


def test_a_receiver_that_is_down_costs_no_attempt(
    ready: Sender, delivery: Delivery, proxy: FaultProxy
) -> None:
    """F25, invariant 8: nothing was sent, so nothing is spent and the operation stays pending."""
    ids = ready.enqueue_named("note-7")
    proxy.refuse()
    assert delivery.deliver("notes", ids) == Delivered(claimed=1, settled=0, again=1)
    assert ready.status("note-7").state is State.PENDING
    assert ready.attempts() == 0


def test_calls_of_different_kinds_run_side_by_side(
    ready: Sender, delivery: Delivery, proxy: FaultProxy, run: Run
) -> None:
    """Their leases began together, so none may wait for another: the receiver has all three at once."""
    ids = ready.enqueue_named("send", "ask", "end")
    ready.change(
        "update oncebox.outbox_entry e set attempts = 1, unanswered = 1, next_call = 'status' from oncebox.operation o"
        " where o.id = e.id and o.operation_id = 'ask'"
    )
    ready.change(
        "update oncebox.outbox_entry e set attempts = 1, unanswered = 1, next_call = 'seal', wanted = 'abandon',"
        " wanted_reason = 'cancelled' from oncebox.operation o where o.id = e.id and o.operation_id = 'end'"
    )
    held = proxy.hold(3, release_when_full=False)
    delivered = run(delivery, ids)
    held.wait_until_full(10)
    held.release()
    assert delivered.result(20).claimed >= 3
    assert {f"{exchange.method} {exchange.path}" for exchange in proxy.requests()[:3]} == {SEND, STATUS, SEAL}
    assert ready.status("send").state is State.SAVED
    assert (ready.status("end").state, ready.status("end").reason) == (State.NOT_SAVED, "cancelled")


def test_a_kind_that_this_version_does_not_know_waits_unclaimed(
    ready: Sender, delivery: Delivery, service: RunningService
) -> None:
    """F18, F55: a newer agent's kind is neither sent nor spent; a worker that knows it delivers it later."""
    ids = ready.enqueue_named("old", "new")
    kind = "update oncebox.operation set kind = :kind where operation_id = 'new'"
    ready.change(kind, kind="note.transmogrify")
    assert delivery.deliver("notes", ids) == Delivered(claimed=1, settled=1, again=0)
    assert ready.status("new").state is State.PENDING
    assert ready.attempts() == 0
    assert ready.rows("select claims from oncebox.outbox_entry") == [(0,)]
    ready.change(kind, kind="note.create")
    assert delivery.deliver("notes", ids) == Delivered(claimed=1, settled=1, again=0)
    assert service.notes() == 2


def test_nothing_is_claimed_from_a_receiver_that_was_never_seen(
    sender: Sender, service: RunningService, token: str, proxy: FaultProxy
) -> None:
    """Invariant 9: a message may arrive all the same, and is then only a hint that leads to nothing."""
    ids = sender.enqueue_named("note-7")
    with sender.delivery(proxy.url, token) as delivery:
        assert delivery.deliver("notes", ids) == Delivered(0, 0, 0)
    assert proxy.requests() == []


def test_a_suspect_is_claimed_only_when_it_comes_alone(ready: Sender, delivery: Delivery) -> None:
    """F13: in a chunk with others it is left out, so that its neighbours never pay."""
    suspect, other = ready.enqueue_named("suspect", "other")
    ready.change("update oncebox.outbox_entry set claims = 2 where id = :id", id=suspect)
    assert delivery.deliver("notes", [suspect, other]).settled == 1
    assert ready.status("suspect").state is State.PENDING
    assert delivery.deliver("notes", [suspect]).settled == 1


def test_a_cancel_while_the_call_is_under_way_yields_to_the_receipt(
    ready: Sender, delivery: Delivery, proxy: FaultProxy, run: Run
) -> None:
    """R22: the note's commit is the only truth: the receipt came, so it is saved."""
    ids = ready.enqueue_named("note-7")
    held = proxy.hold_replies(1, match=SEND)
    delivered = run(delivery, ids)
    held.wait_until_full()
    with Session(ready.agent) as session, session.begin():
        assert OUTBOX.cancel(session, "note-7").state is State.SENDING
    held.release()
    assert delivered.result(20).settled == 1
    assert ready.status("note-7").state is State.SAVED


@pytest.mark.parametrize(
    ("lose", "end"),
    [("swallow_replies", State.SAVED), ("lose_requests", State.NOT_SAVED)],
    ids=["after", "before"],
)
def test_a_cancel_while_the_outcome_is_unknown_is_only_sealed(
    ready: Sender,
    delivery: Delivery,
    proxy: FaultProxy,
    service: RunningService,
    run: Run,
    lose: str,
    end: State,
) -> None:
    """R22: cancelled before or after the commit: never sent again; the seal says what is true."""
    ids = ready.enqueue_named("note-7")
    rule: Rule = getattr(proxy, lose)(1, match=SEND, then="hang")
    delivered = run(delivery, ids)
    eventually(lambda: rule.struck, what="the call is under way")
    with Session(ready.agent) as session, session.begin():
        OUTBOX.cancel(session, "note-7")
    proxy.cut()
    assert delivered.result(20).again == 1
    settle(ready, delivery, "note-7")
    assert ready.status("note-7").state is end
    assert ready.calls() == ["send", "seal"]
    assert service.notes() == (1 if end is State.SAVED else 0)


def test_a_zombie_changes_nothing_and_its_receipt_still_counts(
    ready: Sender, delivery: Delivery, proxy: FaultProxy, service: RunningService, run: Run
) -> None:
    """F10: a worker that was held up beyond its lease; another has asked meanwhile. One note, no violation."""
    ids = ready.enqueue_named("note-7")
    held = proxy.hold_replies(1, match=SEND)
    zombie = run(delivery, ids)
    held.wait_until_full()
    ready.change("update oncebox.outbox_entry set lease_until = now() - interval '1 s'")
    assert delivery.deliver("notes", ids) == Delivered(claimed=1, settled=1, again=0)
    held.release()
    assert zombie.result(20) == Delivered(claimed=1, settled=0, again=0)
    assert ready.calls() == ["send", "status"]
    assert ready.scalar("select count(*) from oncebox.violation") == 0
    assert service.notes() == 1


class Held(CallLoop):
    """A call loop whose answers are ready, but reach the worker only when the gate opens."""

    def __init__(self, claimed: threading.Event, gate: threading.Event) -> None:
        super().__init__()
        self._claimed, self._gate = claimed, gate

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        answers = super().run(work)
        self._claimed.set()
        assert self._gate.wait(20)
        return answers


def test_a_zombie_that_sent_nothing_does_not_end_the_next_lease(
    ready: Sender, delivery: Delivery, proxy: FaultProxy, run: Run, service: RunningService, token: str
) -> None:
    """F9, invariant 5: its "not sent" comes late and is void: the other worker's lease and attempt stand."""
    ids = ready.enqueue_named("note-7")
    gate = threading.Event()
    claimed = threading.Event()
    proxy.refuse()
    receiver = NoteService(NoteServiceSettings(proxy.url, SecretStr(token)))
    zombie = run(replace(delivery, destinations={"notes": receiver}, loop=Held(claimed, gate)), ids)
    assert claimed.wait(10)
    ready.change(
        "update oncebox.outbox_entry set lease_until = now() - interval '1 s', next_call = 'send', unanswered = 0"
    )
    proxy.pass_through()
    held = proxy.hold(1, match=SEND, release_when_full=False)
    other = run(delivery, ids)
    held.wait_until_full()
    attempts = ready.attempts()
    gate.set()
    zombie.result(20)
    assert ready.leased() == 1
    assert ready.attempts() == attempts
    held.release()
    assert other.result(20).settled == 1
    assert service.notes() == 1


def test_no_transaction_is_open_while_the_receiver_has_the_request(
    ready: Sender, delivery: Delivery, proxy: FaultProxy, run: Run
) -> None:
    """Invariant 4: the claim is committed, visible and durable before the first byte leaves; nothing is held open."""
    ids = ready.enqueue_named("note-7")
    held = proxy.hold_replies(1, match=SEND)
    delivered = run(delivery, ids)
    held.wait_until_full()
    sessions = ready.rows(
        "select state, xact_start, backend_xmin from pg_stat_activity"
        " where datname = current_database() and application_name = 'oncebox worker test'"
    )
    assert sessions
    assert {(row.state, row.xact_start, row.backend_xmin) for row in sessions} == {("idle", None, None)}
    assert ready.status("note-7").state is State.SENDING
    assert ready.calls() == ["send"]
    assert (
        ready.scalar(
            "select count(*) from pg_locks l join pg_stat_activity a using (pid)"
            " where a.application_name = 'oncebox worker test'"
        )
        == 0
    )
    held.release()
    assert delivered.result(20).settled == 1


def test_connections_that_ended_during_the_call_do_not_cost_the_receipt(
    ready: Sender, delivery: Delivery, proxy: FaultProxy, run: Run
) -> None:
    """F51: all database connections of the worker were ended meanwhile; the answer is written down all the same."""
    ids = ready.enqueue_named("note-7")
    held = proxy.hold_replies(1, match=SEND)
    delivered = run(delivery, ids)
    held.wait_until_full()
    assert ready.end_connections("oncebox worker test") >= 1
    held.release()
    assert delivered.result(20) == Delivered(claimed=1, settled=1, again=0)
    assert ready.calls() == ["send"]


@pytest.fixture
def database(sender: Sender) -> Generator[TcpProxy]:
    """The network between worker and database."""
    with TcpProxy(sender.database_url) as made:
        yield made


@pytest.fixture
def remote(ready: Sender, database: TcpProxy, proxy: FaultProxy, token: str) -> Generator[Delivery]:
    """A delivery whose database is behind a network, too."""
    url = through(database, ready.database_url)
    with ready.delivery(proxy.url, token, database_url=url, retry_base_s=0.01, retry_ceiling_s=0.01) as made:
        yield made


def test_an_answer_is_kept_while_the_database_is_away(
    ready: Sender,
    remote: Delivery,
    database: TcpProxy,
    proxy: FaultProxy,
    run: Run,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F20: the receipt is in hand and cannot be written: settling is tried again until it can."""
    ids = ready.enqueue_named("note-7")
    held = proxy.hold_replies(1, match=SEND)
    delivered = run(remote, ids)
    held.wait_until_full()
    database.refuse()
    held.release()
    eventually(lambda: failures(caplog) >= 2, what="settling was tried twice")
    assert ready.status("note-7").state is State.SENDING
    database.pass_through()
    assert delivered.result(30) == Delivered(claimed=1, settled=1, again=0)
    assert ready.calls() == ["send"]
    assert ready.status("note-7").state is State.SAVED


def test_an_answer_that_cannot_be_written_down_is_asked_for_again(
    ready: Sender,
    remote: Delivery,
    delivery: Delivery,
    database: TcpProxy,
    proxy: FaultProxy,
    service: RunningService,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """F21, F31: the worker gives up, the lease lapses and reads as unknown; the receiver is asked, nothing is sent."""
    monkeypatch.setattr(delivery_module, "_SETTLE_TRIES", 2)
    ids = ready.enqueue_named("note-7")
    held = proxy.hold_replies(1, match=SEND)
    delivered = run(remote, ids)
    held.wait_until_full()
    database.refuse()
    held.release()
    assert isinstance(delivered.exception(30), OperationalError)
    ready.change("update oncebox.outbox_entry set lease_until = now() - interval '1 s'")
    assert ready.status("note-7").state is State.UNKNOWN
    assert delivery.deliver("notes", ids) == Delivered(claimed=1, settled=1, again=0)
    assert ready.calls() == ["send", "status"]
    assert service.notes() == 1


def test_a_claim_that_cannot_be_made_raises_and_sends_nothing(
    ready: Sender, remote: Delivery, database: TcpProxy, proxy: FaultProxy
) -> None:
    """Without the claim on disk no byte leaves (invariant 2)."""
    ids = ready.enqueue_named("note-7")
    database.refuse()
    with pytest.raises(OperationalError):
        remote.deliver("notes", ids)
    assert proxy.requests() == []
    assert ready.attempts() == 0


def settle(ready: Sender, delivery: Delivery, operation_id: str) -> None:
    """Deliver until it is settled, as the relay's hints would."""

    def settled() -> bool:
        status = ready.status(operation_id)
        delivery.deliver("notes", [status.id])
        return ready.status(operation_id).final

    eventually(settled, what=f"{operation_id} is settled")


def failures(caplog: pytest.LogCaptureFixture) -> int:
    return sum(1 for record in caplog.records if record.message == "database_unreachable")
