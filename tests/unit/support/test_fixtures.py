"""Each test has databases and broker names of its own."""

from urllib.parse import urlsplit

import kombu
import psycopg
import pytest
import redis


@pytest.mark.parametrize("time", [1, 2])
def test_a_sender_database_starts_with_empty_tables(sender_database: str, time: int) -> None:
    """What an earlier test wrote is not there."""
    with psycopg.connect(sender_database) as connection:
        assert connection.execute("SELECT count(*) FROM oncebox.operation").fetchone() == (0,)
        connection.execute("CREATE TABLE public.left_behind ()")


def test_sender_and_note_service_share_no_database(sender_database: str, notes_database: str) -> None:
    assert urlsplit(sender_database).path != urlsplit(notes_database).path
    with psycopg.connect(notes_database) as connection:
        assert connection.execute("SELECT to_regclass('oncebox.operation')").fetchone() == (None,)


def test_an_empty_database_has_no_tables(empty_database: str) -> None:
    with psycopg.connect(empty_database) as connection:
        tables = connection.execute(
            "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        ).fetchone()
    assert tables == (0,)


def test_a_database_of_a_test_goes_although_somebody_is_still_connected(
    postgres_url: str, request: pytest.FixtureRequest
) -> None:
    """A worker that a test killed may have left its connection behind."""
    server = request.getfixturevalue("database_server")
    with server.empty() as url:
        left_open = psycopg.connect(url)
    with psycopg.connect(postgres_url) as connection:
        known = connection.execute(
            "SELECT FROM pg_database WHERE datname = %s", [urlsplit(url).path.strip("/")]
        ).fetchone()
    assert known is None
    left_open.close()


@pytest.mark.parametrize("time", [1, 2])
def test_a_redis_protocol_broker_starts_empty(redis_url: str, time: int) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert client.incr("oncebox-test-counter") == 1
        client.delete("oncebox-test-counter")


def test_a_rabbitmq_of_its_own(rabbitmq_url: str, queue_prefix: str) -> None:
    with kombu.Connection(rabbitmq_url) as connection:
        with connection.SimpleQueue(queue_prefix) as queue:
            queue.put("7")
            assert queue.get(timeout=5).payload == "7"
        kombu.Queue(queue_prefix)(connection.default_channel).delete()
