"""Clients that go away: the work and its record are one, and the access log says that nobody was there."""

import json
import socket
import struct
from collections.abc import Mapping

from oncebox_notes import statements
from tests.notes.running import RunningService, Sender, arguments, moment
from tests.support.polling import eventually


def open_request(service: RunningService, headers: Mapping[str, str], body: bytes) -> socket.socket:
    """A connection on which a create was sent and nothing was read."""
    host, port = service.url.removeprefix("http://").split(":")
    sent = socket.create_connection((host, int(port)))
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join(["POST /v1/notes HTTP/1.1", "Host: notes", *lines, "", ""])
    sent.sendall(head.encode() + body)
    return sent


def drop(connection: socket.socket) -> None:
    """A reset, as a killed client's kernel sends it."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def create_headers(token: str, body: bytes) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Idempotency-Key": "note-7",
        "Operation-Deadline": moment(3600),
    }


def test_a_client_that_leaves_during_the_work_does_not_stop_its_record(
    service: RunningService, researcher: Sender
) -> None:
    """R19, R22: the commit is the only truth; asked later, the operation is completed, once."""
    body = json.dumps(arguments()).encode()
    token = service.token()
    wanted = {"tenant": "demo", "principal": "researcher", "folder": "drafts"}
    with service.connect(autocommit=False) as holder:
        holder.execute(statements.GRANT_LOCK_EXCLUSIVE, wanted)
        connection = open_request(service, create_headers(token, body), body)
        service.wait_for_waiting()
        drop(connection)
        assert researcher.status("note-7")["state"] == "in_progress"
    eventually(lambda: researcher.status("note-7")["state"] == "completed", what="the work ends")
    replay = researcher.create("note-7")
    assert replay.headers["idempotent-replayed"] == "true"
    assert service.notes() == 1
    gone = [line for line in service.log() if line["status"] == 499]
    assert [(line["route"], line["keys"], line["answer"]) for line in gone] == [
        ("/v1/notes", ["note-7"], 201)
    ]


def test_a_client_that_leaves_before_its_body_is_there_starts_nothing(
    service: RunningService, researcher: Sender
) -> None:
    """R22: cancelled before the commit, there is no note, and the key is free."""
    body = json.dumps(arguments()).encode()
    connection = open_request(service, create_headers(service.token(), body), body[:-10])
    drop(connection)
    eventually(
        lambda: [line for line in service.log() if line["status"] == 499], what="the request is in the log"
    )
    assert service.notes() == 0
    assert researcher.create("note-7").status_code == 201


def test_a_client_that_leaves_after_the_commit_finds_the_note(
    service: RunningService, researcher: Sender
) -> None:
    """R22: the reply is lost; the same key gives the same note."""
    body = json.dumps(arguments()).encode()
    connection = open_request(service, create_headers(service.token(), body), body)
    eventually(lambda: service.notes() == 1, what="the note is committed")
    drop(connection)
    assert researcher.create("note-7").headers["idempotent-replayed"] == "true"
    assert service.notes() == 1
