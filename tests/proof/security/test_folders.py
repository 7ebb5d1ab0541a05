"""Folder tricks: one clear answer each, nothing recorded in any table, and nothing told of what exists."""

import json
import socket
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.notes.running import Sender, arguments, item, moment
from tests.proof.security.folder_tricks import COMPOSED, TRICKS, Trick
from tests.proof.security.house import House, fresh_key

STATUS = {"no folder": 400, "not writable": 403}
CODE = {"no folder": "invalid_argument", "not writable": "folder_not_writable"}


@pytest.fixture(scope="module")
def researcher(house: House) -> Sender:
    house.grant(COMPOSED)
    return house.party("demo/researcher").sender


@pytest.fixture(scope="module")
def nobodys(researcher: Sender) -> httpx2.Response:
    """The answer for a folder of nobody: what every folder that one may not see must look like."""
    return researcher.create(fresh_key(), folder="a-folder-that-nobody-has")


@pytest.mark.parametrize("trick", TRICKS, ids=[f"{n}: {trick.sent!a:.40}" for n, trick in enumerate(TRICKS)])
def test_a_trick_gets_the_one_answer(
    house: House, researcher: Sender, nobodys: httpx2.Response, trick: Trick
) -> None:
    before, key = house.fingerprint(), fresh_key()
    alone = researcher.create(key, folder=trick.sent)
    (inside,) = researcher.batch(item(key, arguments=arguments(folder=trick.sent)))
    if trick.means in STATUS:
        assert (alone.status_code, inside["status"]) == (STATUS[trick.means],) * 2
        problem = alone.json()
        assert problem["code"] == CODE[trick.means]
        assert problem["attempt"] == "not_executed"
        assert inside["problem"]["code"] == problem["code"]
        if trick.means == "not writable":
            # To the letter: it tells whether it exists as little as whose it is.
            assert (alone.content, alone.headers["content-type"]) == (
                nobodys.content,
                nobodys.headers["content-type"],
            )
            assert inside["problem"] == nobodys.json()
        else:
            assert [error["path"] for error in problem["errors"]] == ["folder"]
        assert house.fingerprint() == before
        assert researcher.status(key)["state"] == "not_found"
    else:
        # The very folder, by its own name, and one note; the same key again is the same note.
        assert (alone.status_code, inside["status"], inside["replayed"]) == (201, 201, True), inside
        assert alone.json()["note"]["folder"] == trick.means
        assert inside["receipt"]["note"] == alone.json()["note"]


def test_a_folder_that_is_no_string_is_refused(house: House, researcher: Sender) -> None:
    before = house.fingerprint()
    wrong: list[object] = [None, 7, True, ["drafts"], {"path": "drafts"}, 1e999, ["drafts", "private"]]
    for folder in wrong:
        (answer,) = researcher.batch(item(fresh_key(), arguments=arguments() | {"folder": folder}))
        assert answer["status"] == 400, folder
        assert answer["problem"]["code"] == "invalid_argument"
    twice = json.dumps(arguments())[:-1] + ', "folder": "private"}'
    headers = {
        "Idempotency-Key": fresh_key(),
        "Operation-Deadline": moment(60),
        "Content-Type": "application/json",
    }
    assert researcher.http.post("/v1/notes", content=twice.encode(), headers=headers).status_code == 400
    assert house.fingerprint() == before


def test_what_is_longer_than_a_request_may_be_is_refused(house: House, researcher: Sender) -> None:
    before = house.fingerprint()
    for length in (1_000_000, 9_000_000):
        reply = researcher.create(fresh_key(), folder="x" * length)
        assert reply.status_code in (400, 413)
        assert len(reply.content) < 2000
    assert house.fingerprint() == before


PATHS = ["/v1/notes/../folders", "/v1/notes/..", "/v1/notes/%2e%2e/folders", "//v1/notes", "/v1//notes", "/v1/notes/",
         "/v1/notes%2Fx", "/v1/notes/%00", "/v1/notes/..%2f..%2fetc%2fpasswd", "/V1/NOTES", "/v1/notes/*", "/v1/notes;x",
         "/v1/folders/drafts", "/v1/folders/../notes", "/v1/operations/%2e%2e", "/v1/operations/..", "/v1/operations/a%2Fb",
         "/v1/operations/%C3%A9", "/v1/notes?operation=..%2F", "/v1/notes?operation=a&operation=b",
         "/v1/notes?operation=a&tenant=acme", "/v1/folders?tenant=acme", "/v1/notes/%u0064", "/v1/./notes",
         "http://acme/v1/notes", "/v1/notes/" + "x" * 4000, "*", "/../../etc/passwd", "/.git/config", "/.env"]  # fmt: skip


@pytest.mark.parametrize("path", PATHS, ids=[f"{path:.40}" for path in PATHS])
def test_a_tricky_path_is_one_clear_refusal(house: House, researcher: Sender, path: str) -> None:
    """As it is on the wire: no client has tidied it up."""
    before, address = house.fingerprint(), urlsplit(house.url)
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {researcher.http.headers['Authorization']}\r\n"
    with socket.create_connection((address.hostname or "", address.port or 0), 10) as connection:
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
        reply = b"".join(iter(lambda: connection.recv(65536), b""))
    status = int(reply.split(b" ", 2)[1])
    assert 400 <= status < 500 or path == "/v1/folders?tenant=acme", reply
    assert b"acme" not in reply.partition(b"\r\n\r\n")[2].replace(b"tenant=acme", b"")
    assert house.fingerprint() == before
