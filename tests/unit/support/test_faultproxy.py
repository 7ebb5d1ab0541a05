"""The proxy that breaks the network does exactly what a test asks of it."""

import socket
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest

from oncebox_operate.faults.barriers import other_order
from tests.support.faultproxy import Fault, FaultProxy, Storm
from tests.support.polling import eventually


class Upstream(ThreadingHTTPServer):
    """Answers each request with its number, and remembers all."""

    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[str] = []
        self.lock = threading.Lock()
        self.meet: Callable[[], object] = lambda: None

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was cut off is what these tests are about."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        server = self.server
        assert isinstance(server, Upstream)
        server.meet()
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


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_reorders_whole_requests_and_gives_each_client_its_own_reply(
    proxy: FaultProxy, client: httpx2.Client, upstream: Upstream, seed: int
) -> None:
    reordering = proxy.reorder_requests(4, seed=seed, match="POST /v1/*")
    answers = dict[str, "Future[httpx2.Response]"]()
    with ThreadPoolExecutor(4) as threads:
        for number, name in enumerate(["one", "two", "three", "four"], 1):
            assert client.get("/healthz").status_code == 201  # others pass
            answers[name] = threads.submit(client.post, f"/v1/{name}", timeout=10)
            eventually(lambda number=number: number in (reordering.arrived, 4))
    came = [line for line in upstream.seen if line.startswith("POST")]
    sent = [f"POST /v1/{name}" for name in answers]
    assert came == [sent[place] for place in other_order(seed, 4)] != sent
    for name, answer in answers.items():
        assert answer.result().text == f"answer {upstream.seen.index(f'POST /v1/{name}') + 1}"
    assert [exchange.path for exchange in reordering.passed] == [line.split()[1] for line in came]
    assert client.post("/v1/five").text == "answer 9"


def test_a_reordering_that_is_withdrawn_lets_go_whom_it_has(
    proxy: FaultProxy, client: httpx2.Client, upstream: Upstream
) -> None:
    """A client that is cut while it waits for its turn does not keep the others either."""
    reordering = proxy.reorder_requests(5)
    with ThreadPoolExecutor(3) as threads:
        gone = [threads.submit(client.post, "/gone") for _ in range(2)]
        eventually(lambda: reordering.arrived == 2)
        proxy.cut()
        for answer in gone:
            with pytest.raises(httpx2.ReadError):
                answer.result()
        held = threads.submit(client.post, "/held")
        eventually(lambda: reordering.arrived == 3)
        assert upstream.seen == []
        proxy.withdraw(reordering)
        assert held.result().status_code == 201
    assert upstream.seen == ["POST /held"]


def test_doubles_a_request_at_once(proxy: FaultProxy, client: httpx2.Client, upstream: Upstream) -> None:
    """Both copies are at the upstream before either has an answer."""
    both = threading.Barrier(2)
    upstream.meet = both.wait
    doubled = proxy.double_requests()
    assert client.post("/twice").text in ("answer 1", "answer 2")
    assert upstream.seen == ["POST /twice", "POST /twice"]
    (exchange,) = doubled.struck
    assert (exchange.forwarded, exchange.status, exchange.copies) == (2, 201, [201])


def test_a_copy_arrives_seconds_after_the_client_has_its_answer(
    proxy: FaultProxy, client: httpx2.Client, upstream: Upstream
) -> None:
    copied = proxy.copy_requests_late(0.5)
    began = time.monotonic()
    assert client.post("/late", content=b"text").text == "answer 1"
    assert time.monotonic() - began < 0.4
    assert upstream.seen == ["POST /late text"]
    assert client.post("/between").text == "answer 2"
    eventually(lambda: copied.struck[0].copies == [201], interval=0.005)
    assert time.monotonic() - began >= 0.5
    assert upstream.seen == ["POST /late text", "POST /between", "POST /late text"]
    # One whose reply was lost, and whose upstream is gone by then: nobody hears of it.
    proxy.copy_requests_late(0.1)
    proxy.swallow_replies(then="reset")
    with pytest.raises(httpx2.ReadError):
        client.post("/lost")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = closed.getsockname()[1]
    proxy.upstream = ("127.0.0.1", nobody)
    eventually(lambda: not proxy._copies)
    assert upstream.seen[3:] == ["POST /lost"]


def test_delays_a_request_whose_client_may_have_gone(
    proxy: FaultProxy, client: httpx2.Client, upstream: Upstream
) -> None:
    proxy.delay_requests(0.6)
    with pytest.raises(httpx2.ReadTimeout):
        client.post("/v1/notes", content=b"late", timeout=IMPATIENT)
    assert upstream.seen == []
    eventually(lambda: upstream.seen == ["POST /v1/notes late"])


def test_bytes_of_requests_and_replies_drip_and_are_cut(
    proxy: FaultProxy, client: httpx2.Client, upstream: Upstream
) -> None:
    """What the network under HTTP does, it does here, too."""
    proxy.drip(1000, way="requests")
    began = time.monotonic()
    assert client.post("/drip", content=bytes(300)).status_code == 201
    assert time.monotonic() - began > 0.3
    proxy.pass_through()
    proxy.cut_after(20, way="requests")
    with pytest.raises(httpx2.ReadError):
        client.post("/half")
    assert upstream.seen == ["POST /drip " + "\0" * 300]
    proxy.cut_after(20, way="replies", of="next")
    with pytest.raises((httpx2.ReadError, httpx2.RemoteProtocolError)):
        client.post("/cut")
    assert client.post("/whole").text == "answer 3"


WEATHER = {
    Fault.LOSE: 1,
    Fault.SWALLOW: 1,
    Fault.DOUBLE: 1,
    Fault.REPEAT: 1,
    Fault.TRUNCATE: 1,
    Fault.SLOW: 1,
}


def test_a_storm_strikes_the_nth_request_as_its_seed_says(
    proxy: FaultProxy, client: httpx2.Client, upstream: Upstream
) -> None:
    storm = Storm(7, WEATHER, calm=2, seconds=(0.001, 0.01), resets=1, keep=20)
    weather = proxy.storm(storm, match="POST /v1/*")
    heard = list[bool]()
    for number in range(60):
        assert client.get("/healthz").status_code == 201
        try:
            heard.append(client.post(f"/v1/{number}").status_code == 201)
        except httpx2.TransportError:
            heard.append(False)
    gusts = [storm.gust(n) for n in range(60)]
    assert [gust for _, gust in weather.met] == gusts
    silent = {Fault.LOSE, Fault.SWALLOW, Fault.TRUNCATE}
    assert heard == [gust.fault not in silent for gust in gusts]
    arrived = {Fault.LOSE: 0, Fault.DOUBLE: 2, Fault.REPEAT: 2}
    for number, gust in enumerate(gusts):
        assert upstream.seen.count(f"POST /v1/{number}") == (
            1 if gust.fault is None else arrived.get(gust.fault, 1)
        )
    assert all(weather.count(fault) for fault in WEATHER)
    proxy.clear_rules()
    for _ in range(20):
        assert client.post("/v1/calm").status_code == 201
