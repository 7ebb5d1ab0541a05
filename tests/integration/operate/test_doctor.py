"""`oncebox doctor`: what is wrong is a failing line that ends with a command; a party that is away is exit 9."""

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest

from oncebox_models.outcomes import Outcome
from oncebox_operate import note_process
from oncebox_operate.database_failures import Server
from oncebox_outbox import registry
from oncebox_outbox.policy import Policy
from oncebox_outbox.settling import park_poison
from oncebox_worker import publishing
from oncebox_worker.settings import RelaySettings
from tests.integration.operate.conftest import ONCEBOX, Oncebox
from tests.integration.outbox.scenes import CAPABILITIES, Sender
from tests.support.processes import Processes

Change = Callable[[str, str | None], None]
NOWHERE = "127.0.0.1:1"


def looked(oncebox: Oncebox, *tokens: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and the checks by name; the last of a name counts."""
    ran = oncebox("doctor", *tokens, "--json")
    for check in ran.json["checks"]:
        assert (check["do"] is None) is (check["verdict"] == "ok"), check
    return ran.code, {check["check"]: check for check in ran.json["checks"]}


@pytest.fixture
def service(sender: Sender, notes_database: str, tmp_path: Path, environment: Change) -> Generator[str]:
    """A note service that the doctor knows, with an accepted token."""
    server = Server.parse(notes_database, "the test's")
    (made,) = note_process.ask(
        server,
        "token",
        "create",
        "--tenant",
        "demo",
        "--principal",
        "worker",
        "--delegate",
        "--tenants",
        "demo",
    )
    environment("ONCEBOX_NOTES_DATABASE_URL", notes_database)
    environment("ONCEBOX_TOKEN", str(made["token"]))
    processes = Processes(tmp_path)
    try:
        variables = {"ONCEBOX_NOTES_DATABASE_URL": notes_database}
        started = processes.start("notes", [ONCEBOX, "notes", "serve", "--port", "0"], env=variables)
        url = started.wait_for_log(r'"url": "(http://[^"]+)"', timeout=60)[1]
        environment("ONCEBOX_NOTES_URL", url)
        yield url
    finally:
        processes.reap()


@contextmanager
def answering(status: int, body: bytes = b"{}") -> Generator[str]:
    """Something that answers everything the same way."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_sound_installation_is_ok_in_every_line(
    oncebox: Oncebox,
    sender: Sender,
    service: str,
    environment: Change,
    rabbitmq_url: str,
    queue_prefix: str,
) -> None:
    environment("ONCEBOX_BROKER_URL", rabbitmq_url)
    environment("ONCEBOX_QUEUE_PREFIX", queue_prefix)
    publishing.connect(
        RelaySettings(database_url="postgresql://", broker_url=rabbitmq_url, queue_prefix=queue_prefix)
    ).close()
    with (
        psycopg.connect(sender.url, application_name="oncebox relay"),
        psycopg.connect(sender.url, application_name="oncebox worker 1"),
    ):
        sender.change(
            "update oncebox.destination set receiver = :receiver", (), receiver=receiver_of(oncebox)
        )
        code, checks = looked(oncebox)
    assert (code, {name for name, check in checks.items() if check["verdict"] != "ok"}) == (0, {"queue"})
    assert "no worker takes them" in checks["queue"]["says"]
    assert {
        "settings", "database", "durability", "tables", "orphans", "violations", "oldest", "unknown", "relay", "worker",
        "destination", "note service", "token", "clock", "broker", "queue", "notes database",
    } == set(checks)  # fmt: skip


def receiver_of(oncebox: Oncebox) -> str:
    """The identity of the receiver that answers, as the doctor complains of it."""
    _, checks = looked(oncebox)
    return str(checks["receiver"]["says"]).split()[1]


def test_every_failing_line_ends_with_a_command_and_nothing_is_printed_twice(
    oncebox: Oncebox, sender: Sender
) -> None:
    sender.change("update oncebox.alembic_version set version_num = '0000'", ())
    ran = oncebox("doctor")
    assert ran.code == 8
    (line,) = (line for line in ran.out.splitlines() if line.startswith("fail"))
    assert line.split() == [
        "fail",
        "tables",
        "at",
        "revision",
        "0000;",
        "this",
        "version",
        "wants",
        "0001:",
        "oncebox",
        "migrate",
        "up",
    ]
    assert ran.out.splitlines()[-1].startswith("1 of ")


def test_a_database_without_tables_fails_and_the_rest_is_looked_at(
    oncebox: Oncebox, environment: Change, empty_database: str
) -> None:
    environment("ONCEBOX_DATABASE_URL", empty_database)
    code, checks = looked(oncebox)
    assert (code, checks["tables"]["do"]) == (8, "oncebox migrate up")
    assert "orphans" not in checks
    assert {"note service", "broker", "notes database"} <= set(checks)


def test_a_party_that_is_away_is_exit_9_and_costs_its_own_lines_only(
    oncebox: Oncebox, sender: Sender, environment: Change
) -> None:
    environment("ONCEBOX_NOTES_URL", f"http://{NOWHERE}")
    environment("ONCEBOX_BROKER_URL", f"amqp://user:secret@{NOWHERE}//")
    environment("ONCEBOX_NOTES_DATABASE_URL", f"postgresql://user:secret@{NOWHERE}/notes")
    ran = oncebox("doctor", "--json")
    away = {check["check"] for check in ran.json["checks"] if check["unreachable"]}
    assert (ran.code, away) == (9, {"note service", "broker", "notes database"})
    assert "secret" not in ran.out + ran.err
    assert {check["check"]: check["verdict"] for check in ran.json["checks"]}["tables"] == "ok"


def test_a_database_that_is_away_is_exit_9(oncebox: Oncebox, environment: Change) -> None:
    environment("ONCEBOX_DATABASE_URL", f"postgresql://user:secret@{NOWHERE}/oncebox")
    for tokens in ((), ("--quick",)):
        code, checks = looked(oncebox, *tokens)
        assert (code, checks["database"]["unreachable"]) == (9, True)


def test_a_database_that_does_not_exist_is_made_by_the_command_at_the_end(
    oncebox: Oncebox, environment: Change, sender_database: str
) -> None:
    environment("ONCEBOX_DATABASE_URL", sender_database.rpartition("/")[0] + "/missing_database")
    code, checks = looked(oncebox, "--quick")
    assert (code, checks["database"]["do"]) == (9, "createdb missing_database")


def test_a_read_only_database_fails(oncebox: Oncebox, sender: Sender, environment: Change) -> None:
    """F51."""
    environment("ONCEBOX_DATABASE_URL", f"{sender.url}?options=-c%20default_transaction_read_only%3Don")
    code, checks = looked(oncebox, "--quick")
    assert (code, checks["primary"]["verdict"]) == (8, "fail")


def test_what_is_wrong_in_the_outbox_is_found(oncebox: Oncebox, sender: Sender) -> None:
    orphan, stuck, poison = (sender.enqueue_one(name) for name in "abc")
    for id in (stuck, poison):
        sender.claim_one(id)
        sender.lapse(id)
    sender.change("delete from oncebox.outbox_entry where id = any(:ids)", [orphan])
    sender.change(
        "insert into oncebox.violation (kind, id, detail) select 'different_receipt', unnest(cast(:ids as uuid[])), '{}'",
        [stuck],
    )
    sender.change(
        "update oncebox.outbox_entry set ready_at = now() - interval '1 h', lease_until = now() - interval '1 h',"
        " enqueued_at = now() - interval '2 h' where id = any(:ids)",
        [stuck],
    )
    sender.change("update oncebox.outbox_entry set claims = 9 where id = any(:ids)", [poison])
    park_poison(sender.worker, Policy(), limit=9)
    code, checks = looked(oncebox)
    assert code == 8
    assert {name: check["do"] for name, check in checks.items() if check["verdict"] == "fail"} == {
        "orphans": f"oncebox show {orphan}",
        "violations": "oncebox verify",
        "oldest": "oncebox lag",
        "unknown": "oncebox list --state unknown",
    }
    assert (checks["review"]["verdict"], checks["relay"]["verdict"]) == ("warn", "warn")


def test_what_waits_for_its_time_is_no_fault(oncebox: Oncebox, sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.answer(sender.claim_one(id), Outcome.UNKNOWN, "timeout", retry_after_s=600.0)
    code, checks = looked(oncebox)
    assert (code, checks["unknown"]["verdict"], checks["oldest"]["verdict"]) == (0, "ok", "ok")


def test_settings_that_contradict_what_the_receiver_promises_are_named(
    oncebox: Oncebox, sender: Sender, environment: Change
) -> None:
    """Invariant 9."""
    environment("ONCEBOX_LEASE_S", "12")
    code, checks = looked(oncebox)
    assert (code, "lease_s is 12" in checks["settings"]["says"]) == (8, True)
    environment("ONCEBOX_LEASE_S", None)
    registry.see(sender.worker, "notes", replace(CAPABILITIES, admission_window_s=8 * 24 * 3600.0))
    code, checks = looked(oncebox)
    assert (code, "forgets a sealed key" in checks["destination"]["says"]) == (8, True)
    environment("ONCEBOX_CHUNK", "many")
    code, checks = looked(oncebox)
    assert (code, checks["settings"]["do"]) == (8, "unset ONCEBOX_CHUNK")


def test_a_receiver_that_was_never_seen_is_said(oncebox: Oncebox, sender: Sender) -> None:
    sender.change("update oncebox.destination set capabilities = null, capabilities_seen_at = null", ())
    code, checks = looked(oncebox)
    assert (code, checks["destination"]["verdict"], checks["destination"]["do"]) == (
        0,
        "warn",
        "oncebox worker",
    )


def test_a_token_that_is_not_accepted_and_a_service_that_is_not_one(
    oncebox: Oncebox, sender: Sender, service: str, environment: Change
) -> None:
    environment("ONCEBOX_TOKEN", "oncebox_wrong")
    code, checks = looked(oncebox)
    assert (code, checks["note service"]["verdict"], checks["token"]["verdict"]) == (8, "ok", "fail")
    assert "401" in checks["token"]["says"]
    assert "oncebox_wrong" not in checks["token"]["says"]
    environment("ONCEBOX_TOKEN", None)
    assert looked(oncebox)[1]["token"]["verdict"] == "warn"
    for status, words in ((404, "not as a note service would"), (503, "not ready")):
        with answering(status) as url:
            environment("ONCEBOX_NOTES_URL", url)
            code, checks = looked(oncebox)
            assert (code, words in checks["note service"]["says"]) == (8, True)


def test_another_receiver_than_the_one_that_was_seen_fails(
    oncebox: Oncebox, sender: Sender, service: str
) -> None:
    code, checks = looked(oncebox)
    assert (code, "receiver-1" in checks["receiver"]["says"]) == (8, True)


@pytest.mark.parametrize(
    ("ahead_s", "verdict", "words"),
    [
        (0, "ok", "agree"),
        (60, "warn", "ahead of"),
        (-60, "warn", "behind"),
        (-4000, "fail", "1 h 6 min behind"),
    ],
)
def test_clocks_that_are_apart_are_said(
    oncebox: Oncebox, sender: Sender, environment: Change, ahead_s: int, verdict: str, words: str
) -> None:
    then = (datetime.now(UTC) + timedelta(seconds=ahead_s)).isoformat().replace("+00:00", "Z")
    told = (
        '{"receiver": "receiver-1", "class": "A", "batch": {"max_items": 500, "max_bytes": 8388608},'
        ' "admission_window_s": 604800, "request_limit_s": 30, "tombstone_retention_s": 691200,'
        f' "limits": {{}}, "server_time": "{then}", "version": "1"}}'
    )
    with answering(200, told.encode()) as url:
        environment("ONCEBOX_NOTES_URL", url)
        environment("ONCEBOX_TOKEN", "oncebox_token")
        _, checks = looked(oncebox)
    assert (checks["clock"]["verdict"], words in checks["clock"]["says"]) == (verdict, True)


def test_a_broker_that_refuses_us_and_a_queue_that_nobody_made(
    oncebox: Oncebox, sender: Sender, environment: Change, rabbitmq_url: str, queue_prefix: str
) -> None:
    environment("ONCEBOX_QUEUE_PREFIX", queue_prefix)
    environment("ONCEBOX_BROKER_URL", rabbitmq_url)
    _, checks = looked(oncebox)
    assert (checks["broker"]["verdict"], checks["queue"]["verdict"]) == ("ok", "warn")
    assert "is not there yet" in checks["queue"]["says"]
    environment("ONCEBOX_BROKER_URL", "amqp://nobody:secret@" + rabbitmq_url.rpartition("@")[2])
    ran = oncebox("doctor", "--json")
    (broker,) = (check for check in ran.json["checks"] if check["check"] == "broker")
    assert (ran.code, broker["unreachable"], "does not accept" in broker["says"]) == (8, False, True)
    assert "secret" not in ran.out
    environment("ONCEBOX_BROKER_URL", "kafka://h")
    assert looked(oncebox)[1]["broker"]["verdict"] == "fail"


def test_a_broker_of_the_redis_protocol(
    oncebox: Oncebox, sender: Sender, environment: Change, redis_url: str
) -> None:
    environment("ONCEBOX_BROKER_URL", redis_url)
    assert looked(oncebox)[1]["broker"]["verdict"] == "ok"


def test_a_health_check_looks_at_what_is_ours_in_under_a_second(
    oncebox_process: Oncebox, oncebox: Oncebox, sender: Sender, environment: Change
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker:
        environment("ONCEBOX_BROKER_URL", f"amqp://127.0.0.1:{broker.getsockname()[1]}")
        environment("ONCEBOX_NOTES_URL", f"http://{NOWHERE}")
        ran = oncebox_process("doctor", "--quick", "--json")
    assert (ran.code, ran.json["ok"], ran.json["quick"]) == (0, True, True)
    assert [check["check"] for check in ran.json["checks"]] == ["database", "durability", "tables", "broker"]
    environment("ONCEBOX_BROKER_URL", f"amqp://{NOWHERE}")
    assert looked(oncebox, "--quick")[0] == 9
