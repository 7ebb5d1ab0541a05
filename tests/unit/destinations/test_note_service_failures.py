"""Every way a call can fail, over real sockets: what the client says, and that it never tries twice by itself."""

import asyncio
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from uuid import UUID

import httpcore2
import pytest

from oncebox_destinations.exchange import Exchanges, Reply
from oncebox_destinations.note_service import NoteService
from oncebox_destinations.reasons import Reason
from oncebox_destinations.transport_failures import Failure
from oncebox_models.calls import Outgoing
from oncebox_models.outcomes import Answer, Outcome
from tests.unit.destinations.raw_receiver import Behaviour, Connection, RawReceiver
from tests.unit.destinations.samples import (
    CALL_ID,
    TOKEN,
    capabilities_seen,
    created,
    operation,
    problem,
    run,
    settings,
)

CALLS = ["send", "status", "seal"]
SOON_S = 8.0
"""Far above the deadlines of these tests, and below the time their receivers would hold a call."""
OPERATIONS = [operation("note-1"), operation("note-2")]


def call(
    url: str,
    *,
    kind: str = "send",
    call_timeout_s: float = 20.0,
    connect_timeout_s: float | None = None,
    operations: Sequence[Outgoing] = OPERATIONS,
) -> Mapping[UUID, Answer]:
    async def work(service: NoteService) -> Mapping[UUID, Answer]:
        return await getattr(service, kind)(CALL_ID, operations)

    waits = settings(url, call_timeout_s=call_timeout_s, connect_timeout_s=connect_timeout_s)
    return run(lambda: NoteService(waits), work)


def only(answers: Mapping[UUID, Answer]) -> tuple[Outcome, str]:
    """What all operations were told: a failed call says the same of each."""
    assert set(answers) == {of.id for of in OPERATIONS}
    said = {(answer.outcome, answer.reason) for answer in answers.values()}
    assert len(said) == 1
    return said.pop()


# --- the client never began to send --------------------------------------------------------------------------


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.mark.parametrize("kind", CALLS)
def test_a_refused_connection_is_not_sent(kind: str) -> None:
    answers = call(f"http://127.0.0.1:{closed_port()}", kind=kind)
    assert only(answers) == (Outcome.NOT_SENT, "connect_refused")


def test_a_name_without_an_address_is_not_sent() -> None:
    assert only(call("http://no-such-host.invalid")) == (Outcome.NOT_SENT, "dns")


@pytest.fixture
def blackhole() -> object:
    """A port whose queue of connections is full: the kernel drops whoever asks for one more."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = listener.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(address)
        yield address[1]
        for filler in fillers:
            filler.close()


def test_f60_a_connect_timeout_is_not_sent(blackhole: int) -> None:
    started = time.monotonic()
    answers = call(f"http://127.0.0.1:{blackhole}", connect_timeout_s=0.4)
    assert only(answers) == (Outcome.NOT_SENT, "connect_timeout")
    assert time.monotonic() - started < SOON_S


def test_a_tls_handshake_with_something_else_is_not_sent() -> None:
    def no_tls(connection: Connection) -> None:
        connection.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.wait_for_client_to_go()

    with RawReceiver(no_tls) as receiver:
        assert only(call(receiver.url.replace("http", "https"))) == (Outcome.NOT_SENT, "tls")


def test_a_tls_handshake_that_never_answers_is_not_sent() -> None:
    with RawReceiver(Connection.wait_for_client_to_go) as receiver:
        answers = call(receiver.url.replace("http", "https"), connect_timeout_s=0.4)
    assert only(answers) == (Outcome.NOT_SENT, "tls")


def test_a_full_pool_is_not_sent_and_the_call_that_fills_it_is_not_harmed() -> None:
    first, second = operation("note-1"), operation("note-2")
    second_was_answered = threading.Event()

    def slow(connection: Connection) -> None:
        connection.read()
        second_was_answered.wait(10.0)
        connection.reply({"items": [created(first)]})

    async def work(service: NoteService) -> tuple[Answer, Answer]:
        sending = asyncio.create_task(service.send(CALL_ID, [first]))
        while not receiver.requests:
            await asyncio.sleep(0.01)
        turned_away = await service.send(CALL_ID, [second])
        second_was_answered.set()
        return (await sending)[first.id], turned_away[second.id]

    with RawReceiver(slow) as receiver:
        served, turned_away = run(
            lambda: NoteService(settings(receiver.url, max_connections=1, connect_timeout_s=0.5)), work
        )
    assert served.outcome is Outcome.RECEIPT
    assert (turned_away.outcome, turned_away.reason) == (Outcome.NOT_SENT, "pool_full")
    assert len(receiver.requests) == 1


def test_no_request_is_begun_when_its_time_is_already_over() -> None:
    async def work() -> Reply | Failure:
        exchanges = Exchanges(settings(receiver.url))
        over = asyncio.get_running_loop().time()
        try:
            return await exchanges.ask("POST", "/v1/notes:batch", {}, b"{}", until=over)
        finally:
            await exchanges.aclose()

    with RawReceiver(answer_once) as receiver:
        assert asyncio.run(work()) == Failure(False, Reason.TIMEOUT)
    assert receiver.connections == 0


# --- it began, and no whole answer came ----------------------------------------------------------------------


def close_unread(connection: Connection) -> None:
    connection.close()


def read_then_close(connection: Connection) -> None:
    connection.read()


def read_then_reset(connection: Connection) -> None:
    connection.read()
    connection.reset()


def read_then_write(data: bytes) -> Behaviour:
    def behave(connection: Connection) -> None:
        connection.read()
        connection.write(data)

    return behave


def read_then_reset_in_the_body(connection: Connection) -> None:
    connection.read()
    connection.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"items"')
    connection.reset()


BROKEN: Mapping[str, tuple[Behaviour, set[str]]] = {
    # Closed with our bytes unread: the kernel sends RST, early or late.
    "closes unread": (close_unread, {"reset", "disconnect"}),
    "reads, closes": (read_then_close, {"disconnect"}),
    "reads, resets": (read_then_reset, {"reset"}),
    "stops in the status line": (read_then_write(b"HTTP/1.1 20"), {"disconnect"}),
    "stops after a 201 line": (read_then_write(b"HTTP/1.1 201 Created\r\n"), {"disconnect"}),
    "stops after a 201 head": (
        read_then_write(b"HTTP/1.1 201 Created\r\nContent-Length: 90\r\n\r\n"),
        {"truncated"},
    ),
    "stops in a 200 body": (
        read_then_write(b'HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"items": [{'),
        {"truncated"},
    ),
    "resets in a 200 body": (read_then_reset_in_the_body, {"truncated"}),
    "stops in a chunk": (
        read_then_write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{"),
        {"truncated"},
    ),
    "breaks its chunks": (
        read_then_write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{"),
        {"garbage"},
    ),
    "stops in a body without length": (read_then_write(b'HTTP/1.1 200 OK\r\n\r\n{"items": ['), {"garbage"}),
    "speaks no HTTP": (read_then_write(b"220 smtp.test ESMTP\r\n\r\n"), {"garbage"}),
    "sends a head without end": (read_then_write(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 300_000), {"garbage"}),
    "sends HTML with 200": (
        read_then_write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"),
        {"garbage"},
    ),
    "says 204": (read_then_write(b"HTTP/1.1 204 No Content\r\n\r\n"), {"http_204"}),
    "switches protocols": (
        read_then_write(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
        {"garbage", "disconnect", "http_101"},
    ),
}


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_answer_is_unknown_for_every_item_and_is_not_asked_again(how: str, kind: str) -> None:
    behaviour, reasons = BROKEN[how]
    with RawReceiver(behaviour) as receiver:
        outcome, reason = only(call(receiver.url, kind=kind))
    assert outcome is Outcome.UNKNOWN
    assert reason in reasons
    assert receiver.connections == 1
    assert len(receiver.requests) <= 1


def silent(connection: Connection) -> None:
    connection.read()
    connection.wait_for_client_to_go()


def dripping(before: bytes) -> Behaviour:
    """A byte at a time: no read ever times out, and the answer never ends."""

    def behave(connection: Connection) -> None:
        connection.read()
        connection.write(before)
        while not connection.over.wait(0.02):
            connection.write(b" ")

    return behave


@pytest.mark.parametrize(
    ("kind", "behaviour"),
    [
        pytest.param("send", silent, id="says nothing"),
        pytest.param("status", silent, id="says nothing to a status"),
        pytest.param("seal", silent, id="says nothing to a seal"),
        pytest.param(
            "send", dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"), id="drips a body"
        ),
        pytest.param("send", dripping(b"HTTP/1.1 200 OK\r\nX: "), id="drips a head"),
        pytest.param("send", dripping(b"HTTP/1.1 200 OK\r\n\r\n"), id="drips a body without length"),
    ],
)
def test_f60_r46_an_answer_that_does_not_come_in_time_is_unknown(behaviour: Behaviour, kind: str) -> None:
    """C37: no pool's time limit is needed, and in threads there is none: a call ends by its own."""
    started = time.monotonic()
    with RawReceiver(behaviour) as receiver:
        assert only(call(receiver.url, kind=kind, call_timeout_s=1.0)) == (Outcome.UNKNOWN, "timeout")
        assert time.monotonic() - started < SOON_S
    assert len(receiver.requests) == 1


def test_endless_100_continue_ends_by_the_deadline() -> None:
    def behave(connection: Connection) -> None:
        connection.read()
        while not connection.over.wait(0.02):
            connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    with RawReceiver(behave) as receiver:
        assert only(call(receiver.url, call_timeout_s=1.0)) == (Outcome.UNKNOWN, "timeout")


def test_a_receiver_that_never_reads_ends_by_the_deadline() -> None:
    large = operation("note-1", text="x" * 6_000_000)

    def never_read(connection: Connection) -> None:
        connection.over.wait(5.0)

    with RawReceiver(never_read) as receiver:
        answers = call(receiver.url, call_timeout_s=1.0, operations=[large])
    assert (answers[large.id].outcome, answers[large.id].reason) == (Outcome.UNKNOWN, "timeout")


def test_an_answer_larger_than_we_read_is_unknown() -> None:
    def endless(connection: Connection) -> None:
        connection.read()
        connection.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.write(b" " * 65_536)

    async def work(service: NoteService) -> Mapping[UUID, Answer]:
        return await service.send(CALL_ID, OPERATIONS)

    with RawReceiver(endless) as receiver:
        answers = run(lambda: NoteService(settings(receiver.url, response_bytes=1_000_000)), work)
    assert only(answers) == (Outcome.UNKNOWN, "oversized")


def test_a_compressed_answer_is_not_unpacked() -> None:
    def bomb(connection: Connection) -> None:
        request = connection.read()
        assert request.headers["accept-encoding"] == "identity"
        connection.reply(b"\x1f\x8b\x08 not asked for", headers={"Content-Encoding": "gzip"})

    with RawReceiver(bomb) as receiver:
        assert only(call(receiver.url)) == (Outcome.UNKNOWN, "garbage")


def test_an_answer_that_comes_before_the_body_was_sent_is_heard() -> None:
    large = operation("note-1", text="x" * 6_000_000)

    def early(connection: Connection) -> None:
        connection.reply(problem(413, "too_large"), 413, {"Connection": "close"})
        connection.read()

    with RawReceiver(early) as receiver:
        answers = call(receiver.url, operations=[large])
    assert (answers[large.id].outcome, answers[large.id].reason) == (Outcome.REFUSED, "too_large")


# --- connections that are used again -------------------------------------------------------------------------


def send_twice(receiver: RawReceiver) -> list[Answer]:
    operations = [operation("note-1"), operation("note-2")]

    async def work(service: NoteService) -> list[Answer]:
        found: list[Answer] = []
        for of in operations:
            found.append((await service.send(CALL_ID, [of]))[of.id])
            await asyncio.sleep(0.1)
        return found

    return run(lambda: NoteService(settings(receiver.url)), work)


def answer_once(connection: Connection) -> None:
    """A whole answer, whatever it says, that leaves the connection fit for another request."""
    connection.read()
    connection.reply({"items": []})


def test_two_calls_share_a_connection() -> None:
    def twice(connection: Connection) -> None:
        answer_once(connection)
        answer_once(connection)

    with RawReceiver(twice) as receiver:
        send_twice(receiver)
        assert receiver.connections == 1


def test_a_kept_connection_that_was_closed_in_time_costs_nothing() -> None:
    with RawReceiver(answer_once) as receiver:
        first, second = send_twice(receiver)
        assert receiver.connections == 2
        assert len(receiver.requests) == 2
    assert first.reason == second.reason == "missing_item"


def test_a_kept_connection_that_closes_on_our_second_request_is_unknown_and_not_repeated() -> None:
    def close_on_the_second(connection: Connection) -> None:
        answer_once(connection)
        connection.read()

    with RawReceiver(close_on_the_second) as receiver:
        _, second = send_twice(receiver)
        assert (second.outcome, second.reason) == (Outcome.UNKNOWN, "disconnect")
        assert (receiver.connections, len(receiver.requests)) == (1, 2)


def test_a_kept_connection_whose_closing_was_not_noticed_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    # The client looks for a closed connection before it uses one. Blinded, it loses the race that others lose.
    monkeypatch.setattr(httpcore2.AsyncHTTPConnection, "has_expired", lambda _: False)
    with RawReceiver(answer_once) as receiver:
        _, second = send_twice(receiver)
        assert second.outcome is Outcome.UNKNOWN
        assert second.reason in {"disconnect", "reset"}
        assert (receiver.connections, len(receiver.requests)) == (1, 1)


# --- whole answers that are not receipts ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "headers", "expected"),
    [
        (502, b"<html>Bad Gateway</html>", {}, (Outcome.UNKNOWN, "http_502", None)),
        (503, b"", {"Retry-After": "3"}, (Outcome.UNKNOWN, "http_503", None)),
        (503, problem(503, "busy"), {"Retry-After": "3"}, (Outcome.NOT_EXECUTED, "busy", 3.0)),
        (503, problem(503, "busy", attempt="unknown"), {"Retry-After": "3"}, (Outcome.UNKNOWN, "busy", 3.0)),
        (
            429,
            problem(429, "rate_limited"),
            {"Retry-After": "Thu, 01 Jan 2026 00:00:09 GMT", "Date": "Thu, 01 Jan 2026 00:00:00 GMT"},
            (Outcome.NOT_EXECUTED, "rate_limited", 9.0),
        ),
        (
            429,
            problem(429, "rate_limited", retry={"after_s": 4}),
            {},
            (Outcome.NOT_EXECUTED, "rate_limited", 4.0),
        ),
        (401, problem(401, "unauthenticated"), {}, (Outcome.UNAUTHENTICATED, "unauthenticated", None)),
        (413, problem(413, "too_large"), {}, (Outcome.NOT_EXECUTED, "batch_too_large", None)),
        (400, problem(400, "invalid_argument"), {}, (Outcome.NOT_EXECUTED, "batch_refused", None)),
        (500, problem(500, "internal", attempt="unknown"), {}, (Outcome.UNKNOWN, "internal", None)),
        (307, b"", {"Location": "/elsewhere"}, (Outcome.UNKNOWN, "http_307", None)),
    ],
)
def test_a_problem_instead_of_a_batch(
    status: int, body: object, headers: Mapping[str, str], expected: tuple[Outcome, str, float | None]
) -> None:
    def behave(connection: Connection) -> None:
        connection.read()
        connection.reply(body, status, headers)

    with RawReceiver(behave) as receiver:
        answers = call(receiver.url)
    only(answers)
    answer = next(iter(answers.values()))
    assert (answer.outcome, answer.reason, answer.retry_after_s) == expected
    assert len(receiver.requests) == 1


def test_a_receiver_that_repeats_our_token_does_not_make_us_keep_it() -> None:
    """Its words are kept as evidence, and shown to those who may not know the token."""

    def behave(connection: Connection) -> None:
        connection.read()
        echo = {"path": "headers", "message": f"Authorization: Bearer {TOKEN}!"}
        connection.reply(problem(500, "internal", attempt="unknown", errors=[echo]), 500, {})

    with RawReceiver(behave) as receiver:
        answers = call(receiver.url)
    (answer, *_) = answers.values()
    assert answer.problem is not None
    assert answer.problem["errors"] == [{"path": "headers", "message": "Authorization: Bearer (our token)!"}]
    assert TOKEN not in str(answers)


# --- one total deadline for a call in parts ------------------------------------------------------------------


def call_in_parts(receiver: RawReceiver, operations: Sequence[Outgoing]) -> Mapping[UUID, Answer]:
    async def work(service: NoteService) -> Mapping[UUID, Answer]:
        return await service.send(CALL_ID, operations)

    one_each = capabilities_seen(items=1)
    return run(lambda: NoteService(settings(receiver.url, call_timeout_s=1.5), seen=one_each), work)


def test_parts_share_the_deadline_and_what_was_not_sent_by_then_says_so() -> None:
    operations = [operation(f"note-{number}") for number in range(3)]

    def first_then_silent(connection: Connection) -> None:
        connection.read()
        connection.reply({"items": [created(operations[0])]})
        silent(connection)

    started = time.monotonic()
    with RawReceiver(first_then_silent) as receiver:
        answers = call_in_parts(receiver, operations)
        assert time.monotonic() - started < SOON_S
        assert len(receiver.requests) == 2
    assert [(answers[of.id].outcome, answers[of.id].reason) for of in operations] == [
        (Outcome.RECEIPT, "created"),
        (Outcome.UNKNOWN, "timeout"),
        (Outcome.NOT_SENT, "earlier_part_failed"),
    ]


def test_a_part_that_is_told_to_come_back_later_keeps_the_rest_from_being_sent() -> None:
    operations = [operation(f"note-{number}") for number in range(3)]

    def busy(connection: Connection) -> None:
        connection.read()
        connection.reply(problem(503, "busy"), 503, {"Retry-After": "6"})

    with RawReceiver(busy) as receiver:
        answers = call_in_parts(receiver, operations)
        assert len(receiver.requests) == 1
    assert [(answers[of.id].outcome, answers[of.id].retry_after_s) for of in operations] == [
        (Outcome.NOT_EXECUTED, 6.0),
        (Outcome.NOT_SENT, 6.0),
        (Outcome.NOT_SENT, 6.0),
    ]


def test_a_refused_part_does_not_keep_the_rest_from_being_sent() -> None:
    operations = [operation("too-large"), operation("small")]

    def behave(connection: Connection) -> None:
        connection.read()
        connection.reply(problem(413, "too_large"), 413)
        connection.read()
        connection.reply({"items": [created(operations[1])]})

    with RawReceiver(behave) as receiver:
        answers = call_in_parts(receiver, operations)
    assert [answers[of.id].outcome for of in operations] == [Outcome.REFUSED, Outcome.RECEIPT]


# --- mistakes and cancelling are not answers -----------------------------------------------------------------


def test_the_same_operation_twice_in_a_call_is_the_callers_mistake() -> None:
    ours = operation()
    with RawReceiver(silent) as receiver, pytest.raises(ValueError, match="same operation twice"):
        call(receiver.url, operations=[ours, ours])
    assert receiver.connections == 0


def test_a_call_without_operations_sends_nothing() -> None:
    with RawReceiver(silent) as receiver:
        assert call(receiver.url, operations=[]) == {}
    assert receiver.connections == 0


def test_cancelling_a_call_is_not_turned_into_an_answer() -> None:
    async def work(service: NoteService) -> None:
        sending = asyncio.create_task(service.send(CALL_ID, OPERATIONS))
        while not receiver.requests:
            await asyncio.sleep(0.01)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending

    with RawReceiver(silent) as receiver:
        run(lambda: NoteService(settings(receiver.url)), work)


def test_a_client_that_does_not_trace_is_not_worked_with(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent_trace(*_: object) -> None:
        pass

    monkeypatch.setattr("httpcore2._trace.Trace.atrace", silent_trace)
    with RawReceiver(answer_once) as receiver, pytest.raises(RuntimeError, match="without tracing"):
        call(receiver.url)
