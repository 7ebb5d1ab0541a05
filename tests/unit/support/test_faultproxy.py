"""The proxy that breaks the network does exactly what a test asks of it."""

import socket
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest

from tests.support.faultproxy import FaultProxy
from tests.support.polling import eventually


class Upstream(ThreadingHTTPServer):
    """Answers each request with its number, and remembers all."""

    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[str] = []
        self.lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        server = self.server
        assert isinstance(server, Upstream)
        with server.lock:
            server.seen.append(f"{self.command} {self.path} {body.decode()}".strip())
            answer = f"answer {len(server.seen)}".encode()
        self.send_response(201)
        if self.path == "/chunked":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(answer), answer))
            return
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST  # noqa: N815 the name that http.server looks for

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the test's screen."""


@pytest.fixture
def upstream() -> Generator[Upstream, None, None]:
    server = Upstream()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def proxy(upstream: Upstream) -> Generator[FaultProxy, None, None]:
    with FaultProxy(f"127.0.0.1:{upstream.server_address[1]}") as proxy:
        yield proxy


@pytest.fixture
def client(proxy: FaultProxy) -> Generator[httpx2.Client, None, None]:
    with httpx2.Client(base_url=proxy.url, timeout=5.0) as client:
        yield client


IMPATIENT = httpx2.Timeout(5.0, read=0.3)


def test_passes_requests_and_replies_unchanged(
    proxy: FaultProxy, client: httpx2.Client, upstream: Upstream
) -> None:
    assert client.post("/v1/notes?x=1", content=b"text").text == "answer 1"
    assert client.post("/chunked", content=iter([b"te", b"xt"])).status_code == 201
    assert client.get("/healthz").status_code == 201
    assert upstream.seen[0] == "POST /v1/notes?x=1 text"
    assert [exchange.body for exchange in proxy.requests("POST /*")] == [b"text", b"text"]
    assert proxy.requests("POST /v1/notes")[0].reply_body == b"answer 1"
    assert proxy.connections == 1


@pytest.mark.parametrize(("then", "error"), [("hang", httpx2.ReadTimeout), ("reset", httpx2.ReadError)])
def test_swallows_the_reply_of_the_next_matching_request_only(
    proxy: FaultProxy, client: httpx2.Client, upstream: Upstream, then: str, error: type[Exception]
) -> None:
    """The upstream has done its work and has answered; the client never hears of it."""
    swallowed = proxy.swallow_replies(
        1, match="POST /v1/notes:batch", then="hang" if then == "hang" else "reset"
    )
    assert client.get("/v1/notes:batch").text == "answer 1"
    with pytest.raises(error):
        client.post("/v1/notes:batch", content=b"a", timeout=IMPATIENT)
    assert upstream.seen[1:] == ["POST /v1/notes:batch a"]
    assert [exchange.status for exchange in swallowed.struck] == [201]
    assert not swallowed.struck[0].replied
    assert client.post("/v1/notes:batch", content=b"b").text == "answer 3"


def test_holds_requests_until_all_are_here(
    proxy: FaultProxy, client: httpx2.Client, upstream: Upstream
) -> None:
    barrier = proxy.hold(16, match="POST /v1/*")
    with ThreadPoolExecutor(16) as threads:
        first = [threads.submit(client.post, "/v1/notes", content=b"x") for _ in range(15)]
        eventually(lambda: barrier.arrived == 15)
        assert upstream.seen == []
        last = threads.submit(client.post, "/v1/notes", content=b"x")
        barrier.wait_until_full()
        answers = {answer.result().text for answer in (*first, last)}
    assert len(answers) == 16
    assert client.post("/v1/notes").text == "answer 17"


def test_a_held_request_arrives_late_although_its_client_has_gone(
    proxy: FaultProxy, client: httpx2.Client, upstream: Upstream
) -> None:
    barrier = proxy.hold(1, release_when_full=False)
    with pytest.raises(httpx2.ReadTimeout):
        client.post("/v1/notes", content=b"late", timeout=IMPATIENT)
    assert upstream.seen == []
    barrier.release()
    eventually(lambda: upstream.seen == ["POST /v1/notes late"])


def test_holds_replies_until_released(proxy: FaultProxy, client: httpx2.Client, upstream: Upstream) -> None:
    barrier = proxy.hold_replies(1)
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(client.post, "/v1/notes")
        barrier.wait_until_full()
        assert upstream.seen == ["POST /v1/notes"]
        assert not answer.done()
        barrier.release()
        assert answer.result(5).text == "answer 1"


def test_loses_repeats_truncates_and_invents(
    proxy: FaultProxy, client: httpx2.Client, upstream: Upstream
) -> None:
    proxy.lose_requests(1, match="POST /lost")
    with pytest.raises(httpx2.ReadTimeout):
        client.post("/lost", timeout=IMPATIENT)
    assert upstream.seen == []

    proxy.repeat_requests(1)
    assert client.post("/twice").text == "answer 1"
    assert upstream.seen == ["POST /twice", "POST /twice"]

    proxy.truncate_replies(keep=20)
    with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
        client.post("/cut")

    proxy.answer(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>", match="POST /page")
    assert client.post("/page").status_code == 502
    assert len(upstream.seen) == 3


def test_refuses_blackholes_and_resets_until_it_passes_again(
    proxy: FaultProxy, client: httpx2.Client, upstream: Upstream
) -> None:
    proxy.refuse()
    with pytest.raises(httpx2.ConnectError):
        client.post("/refused")
    proxy.blackhole()
    with pytest.raises(httpx2.ReadTimeout):
        client.post("/hole", timeout=IMPATIENT)
    proxy.reset()
    # A reset may meet the client while it connects, writes or reads.
    with pytest.raises(httpx2.NetworkError):
        client.post("/reset")
    assert upstream.seen == []
    proxy.pass_through()
    assert client.post("/passed").status_code == 201
    # What the blackhole kept went with its connection.
    assert upstream.seen == ["POST /passed"]


def test_an_upstream_that_dies_in_the_middle_resets_the_client(
    client: httpx2.Client, proxy: FaultProxy
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as dying:
        proxy.upstream = ("127.0.0.1", dying.getsockname()[1])
        with ThreadPoolExecutor(1) as threads:
            answer = threads.submit(client.post, "/v1/notes")
            connection, _ = dying.accept()
            connection.recv(1024)
            connection.close()
            with pytest.raises(httpx2.ReadError):
                answer.result(5)
