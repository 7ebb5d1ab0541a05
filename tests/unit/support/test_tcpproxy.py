"""The proxy for other protocols: bytes pass, stop, come late, or the connection ends."""

import socket
import threading
import time
from collections.abc import Callable, Generator

import pytest

from tests.support.polling import eventually
from tests.support.tcpproxy import TcpProxy, Way


@pytest.fixture
def proxy() -> Generator[TcpProxy, None, None]:
    """In front of a server that echoes."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        TcpProxy(f"tcp://127.0.0.1:{listener.getsockname()[1]}") as proxy,
    ):
        threading.Thread(target=_echo_all, args=[listener], daemon=True).start()
        yield proxy
        listener.shutdown(socket.SHUT_RDWR)


def _echo_all(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_echo, args=[connection], daemon=True).start()


def _echo(connection: socket.socket) -> None:
    with connection:
        try:
            while data := connection.recv(1024):
                connection.sendall(data)
        except ConnectionError:
            return


def connect(proxy: TcpProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), 5.0)


def test_bytes_pass_both_ways_and_so_does_the_end(proxy: TcpProxy) -> None:
    with connect(proxy) as client:
        client.sendall(b"one")
        assert client.recv(16) == b"one"
        client.shutdown(socket.SHUT_WR)
        assert client.recv(16) == b""
    eventually(lambda: proxy.open_connections == 0)
    assert proxy.connections == 1


@pytest.mark.parametrize("fault", [TcpProxy.blackhole, TcpProxy.keep_replies])
def test_what_is_kept_comes_when_the_network_works_again(
    proxy: TcpProxy, fault: Callable[[TcpProxy], None]
) -> None:
    with connect(proxy) as client:
        fault(proxy)
        client.sendall(b"one")
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(16)
        client.settimeout(5)
        proxy.pass_through()
        assert client.recv(16) == b"one"


def test_a_cut_ends_what_is_open_and_nothing_else(proxy: TcpProxy) -> None:
    with connect(proxy) as client, connect(proxy) as other:
        for open_one in (client, other):
            open_one.sendall(b"one")
            assert open_one.recv(16) == b"one"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            client.recv(16)
    with connect(proxy) as client:
        client.sendall(b"two")
        assert client.recv(16) == b"two"


def test_refused_then_reset_then_as_before(proxy: TcpProxy) -> None:
    port = proxy.port
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    proxy.reset()
    with pytest.raises(ConnectionResetError), connect(proxy) as client:
        client.recv(16)
    proxy.pass_through()
    with connect(proxy) as client:
        client.sendall(b"two")
        assert client.recv(16) == b"two"
    assert proxy.port == port


def echoed(client: socket.socket, data: bytes) -> float:
    """Send, and take it back whole; the seconds that it took."""
    began = time.monotonic()
    client.sendall(data)
    assert received(client, len(data)) == data
    return time.monotonic() - began


def received(client: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer when the connection ends."""
    data = b""
    while len(data) < size and (more := client.recv(size - len(data))):
        data += more
    return data


def bytes_before_reset(end: socket.socket) -> int:
    """How many arrive before the connection is reset; an orderly end fails."""
    count = 0
    while True:
        try:
            data = end.recv(65536)
        except ConnectionResetError:
            return count
        assert data, "ended, but was not reset"
        count += len(data)


@pytest.mark.parametrize(("way", "least"), [("requests", 0.3), ("replies", 0.3), (None, 0.6)])
def test_delays_each_chunk_one_way_or_both(proxy: TcpProxy, way: Way | None, least: float) -> None:
    with connect(proxy) as client:
        proxy.delay(0.3, way=way)
        assert least <= echoed(client, b"one") < least + 0.25
        assert echoed(client, b"two") >= least
        proxy.delay(0, way=way)
        assert echoed(client, b"three") < 0.25


@pytest.mark.parametrize("way", ["requests", "replies"])
def test_drips_so_many_bytes_a_second(proxy: TcpProxy, way: Way) -> None:
    with connect(proxy) as client:
        proxy.drip(1000, way=way)
        client.sendall(bytes(2000))
        began = time.monotonic()
        assert len(received(client, 500)) == 500
        assert 0.4 <= time.monotonic() - began < 1.0
        # The rate is looked up again before each piece: what is left comes at once.
        proxy.pass_through()
        received(client, 1500)
        assert time.monotonic() - began < 1.4


def test_a_drip_of_nothing_is_a_mistake(proxy: TcpProxy) -> None:
    with pytest.raises(ValueError, match="blackhole"):
        proxy.drip(0)


@pytest.fixture
def listener() -> Generator[socket.socket, None, None]:
    """An upstream that the test plays itself."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5)
        yield listener


@pytest.mark.parametrize("size", [0, 1, 1000, 100_000])
@pytest.mark.parametrize("of", ["open", "next"])
def test_cuts_after_so_many_bytes_of_the_requests(listener: socket.socket, of: str, size: int) -> None:
    with TcpProxy(f"127.0.0.1:{listener.getsockname()[1]}") as proxy:
        if of == "next":
            proxy.cut_after(size, way="requests", of="next")
        with connect(proxy) as client, listener.accept()[0] as server:
            server.settimeout(5)
            if of == "open":
                client.sendall(b"before")
                assert received(server, 6) == b"before"
                proxy.cut_after(size, way="requests")
            client.sendall(b"x" * (size + 500))
            assert bytes_before_reset(server) == size
            with pytest.raises(ConnectionResetError):
                client.recv(1)
        with connect(proxy) as client, listener.accept()[0] as server:
            client.sendall(b"x" * 2000)
            assert received(server, 2000) == b"x" * 2000


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_cuts_after_so_many_bytes_of_the_replies(proxy: TcpProxy, size: int) -> None:
    proxy.cut_after(size, way="replies", of="next")
    with connect(proxy) as client, connect(proxy) as other:
        client.sendall(b"x" * (size + 500))
        assert bytes_before_reset(client) == size
        assert echoed(other, b"x" * 2000) < 1
