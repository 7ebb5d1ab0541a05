"""One key at a receiver, as agents and their frameworks send it: together, again, changed, and from elsewhere."""

import socket
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx2
import psycopg
import pytest

from tests.notes.running import RunningService, Sender, arguments, item, moment
from tests.support.polling import eventually


def together(sender: Sender, keys: list[str]) -> list[httpx2.Response]:
    """A create for each of the keys, all at once."""
    barrier = threading.Barrier(len(keys))

    def send(key: str) -> httpx2.Response:
        barrier.wait(20)
        return sender.create(key)

    with ThreadPoolExecutor(len(keys)) as pool:
        return list(pool.map(send, keys))


def test_losers_of_a_race_are_not_turned_away_as_if_the_service_were_down(
    service: RunningService, researcher: Sender
) -> None:
    """R1: of twelve at once one executes, and the others get its bytes or 409: no 5xx, which would open a breaker."""
    replies = together(researcher, ["note-7"] * 12)
    told = Counter((r.status_code, "idempotent-replayed" in r.headers) for r in replies)
    assert told[201, False] == 1
    assert set(told) <= {(201, False), (201, True), (409, False)}
    assert service.notes() == 1


def test_five_keys_from_six_senders_each_make_five_notes(service: RunningService, researcher: Sender) -> None:
    """R5, R7: the claim of a key and its note are one transaction: a loser finds the record, never a key without one."""
    replies = together(researcher, [f"note-{number}" for number in range(5)] * 6)
    executed = [r for r in replies if r.status_code == 201 and "idempotent-replayed" not in r.headers]
    assert (len(executed), service.notes()) == (5, 5)
    assert {r.status_code for r in replies} <= {201, 409, 503}


def test_the_contract_of_a_key(service: RunningService, researcher: Sender) -> None:
    """F62, R38, R43: a hundred calls with one key are one effect with one stored result; changed arguments are a conflict;
    another tenant's or principal's key of that name is another key."""
    replies = together(researcher, ["note-7"] * 100)
    assert {r.status_code for r in replies} <= {201, 409, 503}
    (body,) = {r.content for r in replies if r.status_code == 201}
    assert (researcher.create("note-7").content, service.notes()) == (body, 1)

    changed = researcher.create("note-7", text="Changed.")
    assert (changed.status_code, changed.json()["code"]) == (422, "argument_conflict")
    assert service.notes() == 1

    for name, tenant in (("researcher", "other"), ("writer", "demo")):
        elsewhere = service.principal(name, tenant=tenant).create("note-7", text="Changed.")
        assert (elsewhere.status_code, "idempotent-replayed" in elsewhere.headers) == (201, False)
    assert service.notes() == 3


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_database_whose_default_is_a_snapshot_changes_nothing(
    service: RunningService, researcher: Sender, level: str
) -> None:
    """R8: the waiter's look at the record must be a new one, whatever the database prefers: the service asks for it."""
    (database,) = service.rows("SELECT current_database()")[0]
    service.execute(f"ALTER DATABASE {database} SET default_transaction_isolation = '{level}'")
    end_sessions(service)
    replies = together(researcher, ["note-7"] * 8)
    assert {r.status_code for r in replies} <= {201, 409}
    assert (len({r.content for r in replies if r.status_code == 201}), service.notes()) == (1, 1)


def test_nothing_is_said_of_a_key_by_a_server_that_takes_no_writes(
    start_service: Callable[..., RunningService],
) -> None:
    """R12: a standby may lag: what it lacks may be committed. So no answer comes from one, "not found" least of all."""
    service = start_service(request_limit_seconds=3.0, lock_timeout_seconds=0.2)
    researcher = service.principal()
    assert researcher.create("note-7").status_code == 201
    (database,) = service.rows("SELECT current_database()")[0]
    service.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    end_sessions(service)
    for key in ("note-7", "note-8"):
        asked = researcher.http.get(f"/v1/operations/{key}")
        assert (asked.status_code, asked.json()["operation_state"]) == (503, "unknown")
    with psycopg.connect(service.database_url, options="-c default_transaction_read_only=off") as operator:
        operator.execute(f"ALTER DATABASE {database} RESET default_transaction_read_only".encode())
    states = ("/v1/operations/note-7", "/v1/operations/note-8")
    eventually(lambda: researcher.http.get(states[0]).status_code == 200, what="the primary is back")
    assert [researcher.http.get(path).json()["state"] for path in states] == ["completed", "not_found"]


def test_what_looks_like_a_dry_run_is_refused(service: RunningService, researcher: Sender) -> None:
    """R34: nothing outside of the arguments changes what is done, so nothing there is ignored: the later write is no
    replay of something that wrote nothing, and who asks for a dry run has no note made."""
    headers = {"Idempotency-Key": "note-7", "Operation-Deadline": moment(3600)}
    dry = researcher.http.post("/v1/notes?dry=1", json=arguments(), headers=headers)
    assert (dry.json()["code"], service.notes()) == ("invalid_argument", 0)
    real = researcher.create("note-7")
    assert (real.status_code, "idempotent-replayed" in real.headers) == (201, False)
    assert researcher.batch(item("note-7") | {"dry": True})[0]["problem"]["code"] == "invalid_argument"


def test_200_mb_are_refused_before_they_are_read(service: RunningService, researcher: Sender) -> None:
    """F48: by the length that is declared; the answer is there while the body is still to come."""
    host, port = service.url.removeprefix("http://").split(":")
    size = 200 * 1024 * 1024
    head = (
        f"POST /v1/notes HTTP/1.1\r\nHost: notes\r\nAuthorization: {researcher.http.headers['authorization']}\r\n"
        f"Idempotency-Key: note-7\r\nOperation-Deadline: {moment(3600)}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {size}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(head.encode() + b'{"folder"')
        answer = connection.recv(65_536).decode()
    assert answer.startswith("HTTP/1.1 413 ")
    assert f"{8 * 1024 * 1024}" in answer
    assert service.notes() == 0


def end_sessions(service: RunningService) -> None:
    """The service's next statement needs a new session, with the settings of the database."""
    service.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'oncebox-notes' AND datname = current_database()"
    )
