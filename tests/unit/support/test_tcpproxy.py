"""The proxy for other protocols: bytes pass, stop, come late, or the connection ends."""

import socket
import threading
from collections.abc import Callable, Generator

import pytest

from tests.support.polling import eventually
from tests.support.tcpproxy import TcpProxy


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
