"""Everything that could make a process talk: receivers that echo, databases that refuse a row, nonsense, crashes."""

import json
import socket
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2
import psycopg
from kombu import Connection as Broker

from oncebox_worker.messages import DELIVER_TASK
from tests.acceptance.town import ONCEBOX
from tests.notes.running import moment
from tests.proof.security.aviary import Aviary
from tests.proof.security.canary import Canary
from tests.support import processes
from tests.support.polling import eventually

TOLD = {
    "worker-2.log": ["delivery_failed", "message_unreadable", "CheckViolation"],
    "notes.log": ["operation_failed", "request_failed", "UndefinedTable", "CheckViolation"],
    "worker-3.log": ["start_refused"],
    "PostgreSQL's log": ["never_here", "STATEMENT", "lock timeout"],
}
"""What the logs say of it: the trouble happened."""


def everything(aviary: Aviary, known: Canary) -> Canary:
    """Trouble of every kind with a note of its own, which is returned. `known` is a saved one."""
    canary = Canary.hatch()
    _rows_that_the_note_service_may_not_write(aviary, canary)
    _nonsense_to_the_note_service(aviary, canary)
    _rows_that_the_sender_may_not_write(aviary, canary)
    _rows_that_the_agent_may_not_write(aviary, canary)
    _arguments_that_are_wrong(aviary, canary)
    _a_start_that_is_refused(aviary)
    _a_message_that_is_not_ours(aviary, known)
    return canary


@contextmanager
def _constraint(aviary: Aviary, url: str, table: str, check: str) -> Generator[None]:
    aviary.broken(url, f"ALTER TABLE {table} ADD CONSTRAINT never_here CHECK ({check}) NOT VALID")
    yield
    aviary.broken(url, f"ALTER TABLE {table} DROP CONSTRAINT never_here")


def _rows_that_the_note_service_may_not_write(aviary: Aviary, canary: Canary) -> None:
    """Its database says no, and shows the row: to a batch, to one request, and once there is no table at all."""
    with _constraint(aviary, aviary.places.notes_database, "note_version", "false"):
        aviary.agent("trouble-1", canary)
        assert aviary._notes is not None
        aviary._notes.wait_for_log('"operation_failed"')
        assert _post(aviary, "trouble-2", canary).status_code == 500
    assert aviary.wait("trouble-1", timeout=30).state == "saved"
    aviary.broken(aviary.places.notes_database, "ALTER TABLE note_version RENAME TO note_version_away")
    assert _post(aviary, "trouble-2", canary).status_code == 500
    aviary.broken(aviary.places.notes_database, "ALTER TABLE note_version_away RENAME TO note_version")


def a_write_that_lasts(aviary: Aviary, canary: Canary, seen: Callable[[], bool]) -> None:
    """The text is in the hands of the database, in the middle of a statement, until that was seen."""
    with ThreadPoolExecutor(1) as pool:
        with aviary.notes_frozen_before_commit():
            writing = pool.submit(_post, aviary, "trouble-8", canary)
            eventually(seen, what="the statement is in pg_stat_activity")
        assert writing.result(30).status_code == 201


def _post(aviary: Aviary, key: str, canary: Canary, **headers: str) -> httpx2.Response:
    body = {"folder": "drafts", "title": canary.title, "text": canary.text}
    return httpx2.post(
        f"{aviary.notes_url}/v1/notes", json=body, headers=_headers(aviary, key) | headers, timeout=30
    )


def _headers(aviary: Aviary, key: str) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {aviary.token}",
        "On-Behalf-Of": "demo/researcher",
        "Idempotency-Key": key,
        "Operation-Deadline": moment(3600),
    }


def _nonsense_to_the_note_service(aviary: Aviary, canary: Canary) -> None:
    """Texts and tokens where none belong; each is refused, and none is written down."""
    url, headers = f"{aviary.notes_url}/v1/notes", _headers(aviary, "trouble-3")
    json_type = {"Content-Type": "application/json"}
    whole = json.dumps({"folder": "drafts", "title": canary.title, "text": canary.text})
    with httpx2.Client(timeout=30) as client:
        for body in (
            whole[:-20],
            whole.replace('"text"', '"texts"'),
            json.dumps(canary.text),
            whole[:-1] + "}}",
        ):
            assert client.post(url, content=body.encode(), headers=headers | json_type).status_code == 400
        wrong = {
            "folder": canary.text,
            "title": canary.text * 9,
            "text": [canary.text],
            "format": canary.text,
        }
        assert client.post(url, json=wrong, headers=headers).status_code == 400
        named = headers | {"On-Behalf-Of": aviary.token, "Idempotency-Key": aviary.token * 3}
        assert client.post(url, content=whole.encode(), headers=named | json_type).status_code == 400
        for scheme in ("Basic", "Bearer oncebox_0000000000000000_", "bearer  x"):
            asked = client.get(url, headers={"Authorization": f"{scheme}{aviary.token}"})
            assert asked.status_code == 401
        assert (
            client.get(url, params={"token": aviary.token, "q": canary.text}, headers=headers).status_code
            == 400
        )
    address = httpx2.URL(aviary.notes_url)
    for request in (
        b"\x16\x03\x01" + canary.text.encode(),
        f"GET {aviary.token} HTTP/9\r\n{canary.text}\r\n\r\n".encode(),
    ):
        _send_raw(address.host, address.port or 0, request)


def _send_raw(host: str, port: int, request: bytes) -> None:
    """Send bytes that are no HTTP, and see the connection end."""
    with socket.create_connection((host, port), 10) as connection:
        connection.sendall(request)
        while connection.recv(65536):
            pass


def _rows_that_the_sender_may_not_write(aviary: Aviary, canary: Canary) -> None:
    """The sender's database refuses the settled row, and shows it; a developer's command shows its traceback."""
    with _constraint(aviary, aviary.places.sender_database, "oncebox.operation", "final IS NULL"):
        aviary.agent("trouble-4", canary)
        aviary.worker.wait_for_log('"delivery_failed"', timeout=30)
    with _constraint(aviary, aviary.places.sender_database, "oncebox.operation", "false"):
        failed = aviary.type(
            *("enqueue", "--operation-id", "trouble-5", "--folder", "drafts", "--text", "-"),
            stdin=canary.text,
            expected=(1,),
            ONCEBOX_TITLE=canary.title,
            ONCEBOX_TRACEBACK="1",
        )
        assert failed == ""
    aviary.sender.lapse_leases()
    assert aviary.wait("trouble-4", timeout=30).state == "saved"


def _rows_that_the_agent_may_not_write(aviary: Aviary, canary: Canary) -> None:
    """The agent's own engine shows parameters; ours must not be among them. Its program ends with the traceback."""
    with _constraint(aviary, aviary.places.sender_database, "oncebox.operation", "false"):
        assert "CheckViolation" in aviary.agent("trouble-6", canary).stderr
    with psycopg.connect(aviary.places.sender_database) as holder:
        holder.execute("LOCK TABLE oncebox.operation")
        assert "LockNotAvailable" in aviary.agent("trouble-6", canary).stderr


def _arguments_that_are_wrong(aviary: Aviary, canary: Canary) -> None:
    assert "InvalidOperation" in aviary.agent("trouble-7", canary, as_bytes=True).stderr
    long = Canary(canary.title * 20, canary.text)
    assert "InvalidOperation" in aviary.agent("trouble-7", long).stderr
    aviary.type(
        *("enqueue", "--operation-id", "trouble-7", "--folder", "drafts", "--text", "-", "--format", "html"),
        stdin=canary.text,
        expected=(2,),
        ONCEBOX_TITLE=long.title,
    )
    aviary.type(
        *("enqueue", "--operation-id", "from-agent", "--folder", "drafts", "--text", "-"),
        stdin=canary.text,
        expected=(4,),
        ONCEBOX_TITLE=canary.title,
    )


def _a_start_that_is_refused(aviary: Aviary) -> None:
    """Settings that are wrong are named without what stands in others; so is a database that is not there."""
    refused = aviary.processes.start(
        "worker",
        [*ONCEBOX, "worker"],
        env=aviary.environment | {"ONCEBOX_LEASE_S": "1", "ONCEBOX_LOG_LEVEL": "debug"},
    )
    commands = {
        "celery, refused": (
            [ONCEBOX[0], "-m", "celery", "-A", "oncebox_worker.app", "worker", "-P", "threads"],
            {"ONCEBOX_LEASE_S": "one"},
        ),
        "relay without a database": (
            [*ONCEBOX, "relay"],
            {"ONCEBOX_DATABASE_URL": "postgresql://nobody:x@127.0.0.1:1/x"},
        ),
    }
    with ThreadPoolExecutor(2) as pool:
        running = {
            name: pool.submit(processes.run, command, env=aviary.environment | wrong)
            for name, (command, wrong) in commands.items()
        }
        for name, run in running.items():
            done = run.result()
            assert done.returncode != 0, name
            aviary.outputs[name] = done.stdout + done.stderr
    assert refused.wait(30) != 0


def _a_message_that_is_not_ours(aviary: Aviary, canary: Canary) -> None:
    """Somebody puts a text in our queue: the worker says that it cannot read it, and not what it is."""
    with Broker(aviary.places.broker_url) as broker:
        name = f"{aviary.places.queue_prefix}.deliver"
        broker.Producer().publish(
            [[{"destination": canary.text, "ids": [canary.text]}], {}, {}],
            exchange=name,
            routing_key="deliver",
            serializer="json",
            headers={"task": DELIVER_TASK, "id": "not-ours", "argsrepr": "-", "kwargsrepr": "-"},
            correlation_id="not-ours",
        )
    aviary.worker.wait_for_log('"message_unreadable"', timeout=20)
