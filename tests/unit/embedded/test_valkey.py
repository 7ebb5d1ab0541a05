"""The embedded Valkey: keeps what it was given, refuses rather than drops, asks for its password."""

import socket
from pathlib import Path

import pytest
import redis

from oncebox_operate.embedded import EmbeddedError, EmbeddedValkey


def test_what_was_published_survives_a_restart_in_a_folder_with_an_awkward_name(data: Path) -> None:
    with EmbeddedValkey(data) as server:
        url = server.url()
        with redis.Redis.from_url(url) as client:
            client.rpush("queue", "7")
    with EmbeddedValkey(data) as server:
        assert server.url() == url
        with redis.Redis.from_url(url) as client:
            assert client.lrange("queue", 0, -1) == [b"7"]


def test_a_full_broker_refuses_and_never_evicts(data: Path) -> None:
    with EmbeddedValkey(data) as server, redis.Redis.from_url(server.url()) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("bind") == {"bind": "127.0.0.1"}


def test_without_the_password_nobody_gets_in(data: Path) -> None:
    with EmbeddedValkey(data) as server, socket.create_connection(("127.0.0.1", server.port), 5.0) as client:
        client.sendall(b"PING\r\n")
        assert client.recv(256).startswith(b"-NOAUTH")


def test_a_second_start_and_a_taken_port_are_named(data: Path) -> None:
    with EmbeddedValkey(data), pytest.raises(EmbeddedError, match=r"data of Valkey .* in use by process"):
        EmbeddedValkey(data).start()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EmbeddedError, match=rf"port {port} on 127\.0\.0\.1 is taken"):
            EmbeddedValkey(data, port=port).start()


def test_a_failed_start_shows_the_end_of_its_log(data: Path) -> None:
    with EmbeddedValkey(data):
        pass
    for file in (data / "appendonlydir").glob("*.manifest"):
        file.write_text("no manifest\n", encoding="ascii")
    with pytest.raises(EmbeddedError, match="Valkey did not start on") as failed:
        EmbeddedValkey(data).start()
    assert str(data / "valkey.log") in str(failed.value)
    assert "Invalid AOF manifest file format" in str(failed.value)
