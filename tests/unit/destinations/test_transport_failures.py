"""The trace decides between "not sent" and "unknown"; the exception only gives the word. Without a network."""

import socket
import ssl

import httpx2
import pytest

from oncebox_destinations.reasons import Reason
from oncebox_destinations.transport_failures import Failure, Oversized, Progress, failure

WAITING: list[str] = []
CONNECTING = ["connection.connect_tcp.started"]
TLS = [*CONNECTING, "connection.connect_tcp.complete", "connection.start_tls.started"]
SENT = [*CONNECTING, "connection.connect_tcp.complete", "http11.send_request_headers.started"]
KEPT_ALIVE = ["http11.send_request_headers.started"]
ANSWERING = [*SENT, "http11.send_request_headers.complete", "http11.receive_response_headers.complete"]
BEFORE = {"waiting": WAITING, "connecting": CONNECTING, "tls": TLS}
AFTER = {"sent": SENT, "kept_alive": KEPT_ALIVE, "answering": ANSWERING}

EVERY_ERROR = [
    httpx2.ConnectError("x"),
    httpx2.ConnectTimeout("x"),
    httpx2.PoolTimeout("x"),
    httpx2.ReadTimeout("x"),
    httpx2.WriteTimeout("x"),
    httpx2.ReadError("x"),
    httpx2.WriteError("x"),
    httpx2.CloseError("x"),
    httpx2.RemoteProtocolError("x"),
    httpx2.LocalProtocolError("x"),
    httpx2.ProxyError("x"),
    httpx2.UnsupportedProtocol("x"),
    TimeoutError(),
    ssl.SSLError(),
    OSError(),
    Oversized(),
]


def named(error: object) -> str | None:
    return type(error).__name__ if isinstance(error, Exception) else None


def wrapping(cause: OSError) -> httpx2.ConnectError:
    """As the client does it: the cause itself stands where the message should."""
    return httpx2.ConnectError(cause)  # pyright: ignore[reportArgumentType] (declared as str)


def after(events: list[str], error: Exception) -> Failure:
    progress = Progress()
    for event in events:
        progress.note(event)
    return failure(progress, error)


@pytest.mark.parametrize("error", EVERY_ERROR, ids=named)
@pytest.mark.parametrize("phase", AFTER)
def test_after_sending_began_every_error_is_unknown(phase: str, error: Exception) -> None:
    assert after(AFTER[phase], error).began


@pytest.mark.parametrize("phase", BEFORE)
@pytest.mark.parametrize(
    "error",
    [httpx2.ReadError("x"), httpx2.ReadTimeout("x"), httpx2.WriteError("x"), httpx2.RemoteProtocolError("x")],
    ids=named,
)
def test_an_error_of_sending_that_the_trace_has_not_seen_is_unknown(phase: str, error: Exception) -> None:
    assert after(BEFORE[phase], error) == Failure(True, Reason.BROKEN_CONNECTION)


@pytest.mark.parametrize(
    ("phase", "error", "reason"),
    [
        ("waiting", httpx2.PoolTimeout("x"), "pool_full"),
        ("waiting", TimeoutError(), "pool_full"),
        ("connecting", httpx2.ConnectTimeout("x"), "connect_timeout"),
        ("connecting", TimeoutError(), "connect_timeout"),
        ("connecting", wrapping(OSError(101, "unreachable")), "connect_failed"),
        ("connecting", wrapping(socket.gaierror(-2, "unknown name")), "dns"),
        ("connecting", wrapping(ConnectionRefusedError()), "connect_refused"),
        ("connecting", OSError(), "connect_failed"),
        ("tls", httpx2.ConnectError("x"), "tls"),
        ("tls", httpx2.ConnectTimeout("x"), "tls"),
        ("tls", TimeoutError(), "tls"),
        ("tls", ssl.SSLError(), "tls"),
    ],
)
def test_before_sending_began_it_is_not_sent(phase: str, error: Exception, reason: str) -> None:
    assert after(BEFORE[phase], error) == Failure(False, Reason(reason))


@pytest.mark.parametrize(
    ("phase", "error", "reason"),
    [
        ("sent", TimeoutError(), "timeout"),
        ("answering", TimeoutError(), "timeout"),
        ("sent", httpx2.ReadError(""), "reset"),
        ("answering", httpx2.ReadError(""), "truncated"),
        ("kept_alive", httpx2.RemoteProtocolError("Server disconnected without …"), "disconnect"),
        ("answering", httpx2.RemoteProtocolError("peer closed connection without …"), "truncated"),
        ("sent", httpx2.RemoteProtocolError("illegal status line"), "garbage"),
        ("answering", Oversized(), "oversized"),
        ("answering", ssl.SSLError(), "broken_connection"),
    ],
)
def test_the_word_for_what_happened_after_sending_began(phase: str, error: Exception, reason: str) -> None:
    assert after(AFTER[phase], error) == Failure(True, Reason(reason))


def test_a_refusal_is_found_behind_a_group_of_attempts() -> None:
    attempts = ExceptionGroup("all failed", [OSError(101, "unreachable"), ConnectionRefusedError()])
    cause = OSError("All connection attempts failed")
    cause.__cause__ = attempts
    assert after(CONNECTING, wrapping(cause)).reason == "connect_refused"


@pytest.mark.parametrize(
    "event", ["http2.send_connection_init.started", "socks5.anything", "new.event.started"]
)
def test_an_event_we_do_not_know_counts_as_sending(event: str) -> None:
    assert after([event], TimeoutError()).began


def test_what_began_stays_begun_whatever_the_client_traces_later() -> None:
    assert after([*SENT, "connection.connect_tcp.started"], httpx2.ConnectError("x")).began
