"""`up` on a PostgreSQL and a RabbitMQ that were there before, with the usual ports taken."""

import json
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

import psycopg

from oncebox_operate.up import brokers
from tests.acceptance.up.running import Machine
from tests.support.databases import with_database
from tests.support.polling import eventually


def test_given_servers_are_used_and_ports_that_are_taken_are_gone_around(
    machine: Machine, postgres_url: str, rabbitmq_url: str
) -> None:
    sender = with_database(postgres_url, "oncebox_test_up")
    with ExitStack() as stack:
        for port in (5432, 5672, 6379):
            take(stack, port)  # or a server has it, which is as good
        # Nobody else keeps this one: an `up` of another test may have it for now, and give it back too early.
        eventually(lambda: take(stack, 8320), timeout=60, what="port 8320 is ours")
        up = machine.ready_up("--database-url", sender, "--broker", rabbitmq_url, "--workers", "1", "--json")
        places = json.loads(next(line for line in up.log_text().splitlines() if line.startswith("{")))
        try:
            assert places["database_url"] == sender
            assert urlsplit(places["notes_database_url"]).path == "/oncebox_test_up_notes"
            assert places["broker_url"] == rabbitmq_url
            assert set(places) >= {"notes_url", "token", "tenant", "principal", "folder", "data"}
            assert ":8320" not in places["notes_url"]
            assert "Port 8320 is taken: the note service listens at " in up.log_text()
            assert machine.saves("note-7")["state"] == "saved"
            assert machine.types("verify").returncode == 0
        finally:
            assert up.terminate(timeout=60) == 0
            brokers.delete_queues(rabbitmq_url, places["queue_prefix"])
            with psycopg.connect(postgres_url, autocommit=True) as connection:
                connection.execute("DROP DATABASE IF EXISTS oncebox_test_up WITH (FORCE)")
                connection.execute("DROP DATABASE IF EXISTS oncebox_test_up_notes WITH (FORCE)")


def take(stack: ExitStack, port: int) -> bool:
    """Listen on the port until the stack ends; False when somebody else does."""
    with ExitStack() as attempt:
        taken = attempt.enter_context(socket.socket())
        # As servers do: connections that linger from before do not hold the port.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", port))
            taken.listen()
        except OSError:
            return False
        stack.enter_context(attempt.pop_all())
        return True


def test_with_a_port_of_its_own_nothing_else_is_tried(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        told = machine.types("up", "--port", port, ends_with=1)

    assert f"Port {port} on 127.0.0.1 is taken" in told.stderr
