"""Requests that no HTTP client would send: refused by the parser or by the service, and nothing recorded."""

import socket
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proof.properties.budget import tries
from tests.proof.properties.problem_shape import check_problem
from tests.proof.properties.raw_http import Header, answers, exchange
from tests.proof.properties.target import (
    AUTHENTICATED,
    BATCH,
    CREATE,
    SEAL,
    SEAL_MANY,
    STATUS,
    WRITING,
    Target,
    is_unparsed,
)

CONTENT_LENGTHS: Final = [
    *(
        b"-1",
        b"+10",
        b"abc",
        b"0x10",
        b"1e3",
        b"10 20",
        b"10, 20",
        b"\xb2",
        b"9" * 20,
        b"9" * 400,
        b"1_0",
        b"",
    ),
]
CODINGS: Final = [
    b"gzip",
    b"identity",
    b"chunked, gzip",
    b"chunked, chunked",
    b"chunked;q=1",
    b"x",
    b"\x0bchunked",
]
CHUNKS: Final = [
    b"zz\r\nabcde\r\n0\r\n\r\n",
    b"-5\r\nabcde\r\n",
    b"5\r\nabcdefgh\r\n",
    b"f" * 20 + b"\r\na\r\n",
    b"5;\x00\r\n",
]


@pytest.mark.parametrize("length", CONTENT_LENGTHS)
@pytest.mark.parametrize("endpoint", [CREATE, BATCH])
def test_a_length_that_is_no_number_is_refused(target: Target, endpoint: bytes, length: bytes) -> None:
    sent = target.build(endpoint, headers=[(b"Content-Length", length)])
    target.refuse(sent, "invalid_argument", unparsed=True)


@pytest.mark.parametrize("endpoint", [CREATE, BATCH])
def test_two_lengths_are_refused(target: Target, endpoint: bytes) -> None:
    length = len(target.body(endpoint))
    lies: list[list[Header]] = [
        [(b"Content-Length", b"%d" % length), (b"Content-Length", b"%d" % (length + 1))],
        [(b"Content-Length", b"%d" % length), (b"Transfer-Encoding", b"chunked")],
        [(b"Transfer-Encoding", b"chunked"), (b"Content-Length", b"%d" % length)],
        [(b"Content-Length", b"%d" % length), (b"Transfer-Encoding", b"identity")],
    ]
    for headers in lies:
        target.refuse(target.build(endpoint, headers=headers), "unsupported_type", unparsed=True)


@pytest.mark.parametrize("endpoint", [*WRITING, BATCH, SEAL_MANY])
@given(data=st.data())
@tries(20)
def test_a_length_that_is_too_short_cuts_the_body_off(
    target: Target, endpoint: bytes, data: st.DataObject
) -> None:
    """What comes after it is no part of this request, and no request of its own."""
    body = target.body(endpoint)
    length = b"%d" % data.draw(st.integers(0, len(body) - 1))
    target.refuse(target.build(endpoint, headers=[(b"Content-Length", length)]), "invalid_argument")


@pytest.mark.parametrize("endpoint", [*WRITING, BATCH, SEAL_MANY])
def test_a_body_that_never_comes_is_waited_for_a_bounded_time(target: Target, endpoint: bytes) -> None:
    """The one answer here that is no 4xx, and it says for certain that nothing was executed: 503, send it again."""
    length = b"%d" % (len(target.body(endpoint)) + 1)
    answer = target.send(target.build(endpoint, headers=[(b"Content-Length", length)]))
    assert (answer.status, answer.json["code"], answer.json["attempt"]) == (503, "busy", "not_executed")
    assert answer.headers["retry-after"]


@pytest.mark.parametrize("endpoint", WRITING)
def test_who_leaves_before_the_end_of_the_body_leaves_nothing(target: Target, endpoint: bytes) -> None:
    sent = target.build(endpoint)
    host, port = target.url.removeprefix("http://").split(":")
    for end in (1, len(sent) // 2, len(sent) - 1):
        with socket.create_connection((host, int(port)), 10) as connection:
            connection.sendall(sent[:end])
    # An answer to somebody else shows that the service has looked at those connections, and lives.
    target.refuse(target.build(CREATE, body=b"{}"), "invalid_argument")


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("endpoint", [CREATE, BATCH])
def test_a_transfer_coding_that_is_unknown_is_refused(target: Target, endpoint: bytes, coding: bytes) -> None:
    body = target.body(endpoint)
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    sent = target.build(
        endpoint, without=b"Content-Length", headers=[(b"Transfer-Encoding", coding)], body=chunked
    )
    target.refuse(sent, "unsupported_type", "invalid_argument", unparsed=True)


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("endpoint", [CREATE, BATCH])
def test_a_broken_chunk_is_refused(target: Target, endpoint: bytes, chunk: bytes) -> None:
    headers = [(b"Transfer-Encoding", b"chunked")]
    answer = target.send(target.build(endpoint, without=b"Content-Length", headers=headers, body=chunk))
    assert answer.status in (0, 400), answer


@pytest.mark.parametrize("endpoint", [CREATE, BATCH, SEAL_MANY])
@pytest.mark.parametrize("expected", [b"100-continue", b"200-ok", b""])
def test_what_the_client_expects_makes_nothing_right(
    target: Target, endpoint: bytes, expected: bytes
) -> None:
    """A body that is too large is refused although the client waits for a word before it sends it."""
    headers = [(b"Expect", expected), (b"Content-Length", b"9000000")]
    target.refuse(target.build(endpoint, headers=headers, body=b""), "too_large")
    wrong = target.build(endpoint, headers=[(b"Expect", expected)], body=b"{}")
    target.refuse(wrong, "invalid_argument")


@pytest.mark.parametrize("body", [b"{}", b'{"args_hash":"' + b"0" * 64 + b'"}', b'{"authorized":true}', b" "])
def test_a_body_where_none_is_taken_is_refused(target: Target, body: bytes) -> None:
    """It would be ignored: a hash that somebody believes to be kept with the tombstone."""
    headers = [(b"Content-Type", b"application/json"), (b"Content-Length", b"%d" % len(body))]
    target.refuse(target.build(SEAL, headers=headers, body=body), "invalid_argument")
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    headers = [(b"Transfer-Encoding", b"chunked")]
    target.refuse(target.build(SEAL, headers=headers, body=chunked), "invalid_argument")


HEADS: Final = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /healthz HTTP/9.9\r\nHost: notes\r\n\r\n",
    b"GET /healthz HTTP/1.1\nHost: notes\n\n",
    b"GET /healthz HTTP/1.1\r\nHost notes\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n: notes\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: notes\r\n folded: a\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHo st: notes\r\n\r\n",
    b"GET healthz HTTP/1.1\r\nHost: notes\r\n\r\n",
    b"get /healthz HTTP/1.1\r\nHost: notes\r\n\r\n",
    b"\r\n\r\n\x00\x00\x00",
    b"GET /v1/operations/\xff HTTP/1.1\r\nHost: notes\r\n\r\n",
    b"GET /v1/operations/note\x00-7 HTTP/1.1\r\nHost: notes\r\n\r\n",
    b"GET /v1/operations/" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: notes\r\n\r\n",
]


@pytest.mark.parametrize("head", HEADS, ids=[str(number) for number in range(len(HEADS))])
def test_what_is_no_http_is_refused_by_the_parser(target: Target, head: bytes) -> None:
    assert is_unparsed(target.send(head))


@pytest.mark.parametrize(
    "method", [b"DELETE", b"PATCH", b"OPTIONS", b"TRACE", b"HEAD", b"CONNECT", b"PROPFIND"]
)
@pytest.mark.parametrize("endpoint", [CREATE, BATCH, STATUS])
def test_another_method_is_not_allowed(target: Target, endpoint: bytes, method: bytes) -> None:
    right, _ = target.target(endpoint)
    answer = target.send(target.build(endpoint).replace(right + b" ", method + b" ", 1))
    # CONNECT asks for a tunnel: httptools ends the request at its head, and the service sees the method.
    assert (answer.status, "GET" in answer.headers["allow"] or "POST" in answer.headers["allow"]) == (
        405,
        True,
    )
    if method != b"HEAD":
        check_problem(answer.status, answer.headers, answer.body)


@pytest.mark.parametrize("endpoint", [CREATE, BATCH])
def test_a_connection_that_is_to_become_another_one_stays_what_it_is(target: Target, endpoint: bytes) -> None:
    for protocol in (b"websocket", b"h2c", b"TLS/1.0"):
        headers = [(b"Upgrade", protocol), (b"Connection", b"Upgrade"), (b"Authorization", b"Bearer x")]
        target.refuse(
            target.build(endpoint, headers=headers), "unauthenticated", "invalid_argument", unparsed=True
        )


def test_a_second_request_in_the_same_bytes_is_one_of_its_own(target: Target) -> None:
    """Nothing of the first one's authority is left for it."""
    first = target.build(CREATE, body=b"{}").replace(b"Connection: close\r\n", b"", 1)
    second = target.build(CREATE, without=b"Authorization")
    host, port = target.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(first + second)
        assert [answer.status for answer in answers(connection)] == [400, 401]
    before, after = target.forget_what_was_recorded()
    assert before == after


@pytest.mark.parametrize("endpoint", AUTHENTICATED)
@given(data=st.data())
@tries(25)
def test_a_request_with_some_bytes_changed_is_never_a_fault_of_the_service(
    target: Target, endpoint: bytes, data: st.DataObject
) -> None:
    """It is refused, or by chance still is a right one; then at most the one thing that it asks for is done."""
    sent = bytearray(target.build(endpoint))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(sent) - 1))
        piece = data.draw(
            st.one_of(st.binary(max_size=3), st.sampled_from([b"\r\n", b"\x00", b"%", b'"', b"\xff"]))
        )
        sent[place : place + data.draw(st.integers(0, 3))] = piece
    # Ends the head, where it has lost its end: the service waits for one as long as the connection lasts.
    answer = exchange(target.url, bytes(sent) + b"\r\n\r\n")
    before, after = target.forget_what_was_recorded()
    said = f"{bytes(sent)!r} met {answer}"
    if answer.status in (200, 201):
        assert all(0 <= now - then <= 1 for then, now in zip(before, after, strict=True)), said
        return
    assert before == after, said
    if answer.status == 503:
        assert "the body did not arrive" in answer.json["detail"], said
    elif answer.status and not is_unparsed(answer):
        check_problem(answer.status, answer.headers, answer.body)
