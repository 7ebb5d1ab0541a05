"""Creating one note: replays, conflicts, scopes, and what is refused without a trace."""

import json
import socket
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.notes.running import RunningService, Sender, arguments, moment


def test_a_replay_is_the_same_status_and_bytes(service: RunningService, researcher: Sender) -> None:
    """R26, R28: the original result with the original id, and one note."""
    first, second = researcher.create("note-7"), researcher.create("note-7")
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert second.headers["location"] == first.headers["location"]
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert service.notes() == 1


def test_the_note_of_status_seal_and_batch_is_that_of_the_receipt(researcher: Sender) -> None:
    receipt = researcher.create("note-7").json()
    state, sealed = researcher.status("note-7"), researcher.seal("note-7").json()
    replay = researcher.batch(
        {
            "operation_id": "note-7",
            "deadline": moment(3600),
            "kind": "note.create",
            "arguments": arguments(),
        }
    )[0]
    assert json.dumps(replay["receipt"]) == json.dumps(receipt)
    assert replay["replayed"]
    for answer in (state, sealed):
        assert answer["state"] == "completed"
        assert json.dumps(answer["note"]) == json.dumps(receipt["note"])
        assert answer["args_hash"] == receipt["args_hash"]


def test_other_arguments_under_a_used_key_are_a_conflict(service: RunningService, researcher: Sender) -> None:
    """R29: 422, with neither a diff nor the stored hash."""
    stored = researcher.create("note-7").json()["args_hash"]
    refused = researcher.create("note-7", text="Changed.")
    assert refused.status_code == 422
    assert stored not in refused.text
    assert service.notes() == 1


def test_a_conflict_comes_before_every_later_check(service: RunningService, researcher: Sender) -> None:
    """F32: neither a passed deadline nor a folder without a grant hides that the key is used."""
    researcher.create("note-7")
    service.revoke()
    assert researcher.create("note-7", text="Changed.", deadline=moment(-60)).status_code == 422
    assert researcher.create("note-7", folder="archive").status_code == 422


@pytest.mark.parametrize(("tenant", "name"), [("other", "researcher"), ("demo", "writer")])
def test_a_key_belongs_to_one_principal_of_one_tenant(
    service: RunningService, researcher: Sender, tenant: str, name: str
) -> None:
    """R38, R39: the same key in another scope makes another note, and shows nothing of this one."""
    mine = researcher.create("note-7").json()
    stranger = service.principal(name, tenant=tenant)
    assert stranger.status("note-7")["state"] == "not_found"
    theirs = stranger.create("note-7").json()
    assert theirs["note"]["id"] != mine["note"]["id"]
    assert service.notes() == 2


def test_a_replay_after_the_grant_was_revoked_is_the_receipt(
    service: RunningService, researcher: Sender
) -> None:
    """R41: the receipt has no text, so its owner gets it; the text needs a current grant."""
    first = researcher.create("note-7")
    service.revoke()
    replay = researcher.create("note-7")
    assert replay.content == first.content
    assert "Reef B" not in replay.text
    assert researcher.http.get(first.headers["location"]).status_code == 404
    assert researcher.create("note-8").json()["code"] == "folder_not_writable"
    assert service.notes() == 1


def test_a_refusal_leaves_the_key_free(service: RunningService, researcher: Sender) -> None:
    """R24, R25: once the grant is there, the same key executes."""
    assert researcher.create("note-7", folder="archive").status_code == 403
    assert service.rows("SELECT * FROM operation_record") == []
    service.grant("archive")
    assert researcher.create("note-7", folder="archive").status_code == 201


def test_a_failure_of_the_database_is_not_stored(service: RunningService, researcher: Sender) -> None:
    """R23: a 500 is never replayed; the same key executes when the fault is gone."""
    service.execute(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'broken'; END $$"
    )
    service.execute("CREATE TRIGGER fail BEFORE INSERT ON note EXECUTE FUNCTION fail()")
    failed = researcher.create("note-7").json()
    assert (failed["code"], failed["attempt"]) == ("internal", "unknown")
    service.execute("DROP TRIGGER fail ON note")
    assert researcher.status("note-7")["state"] == "not_found"
    assert researcher.create("note-7").status_code == 201
    assert service.notes() == 1


def test_a_constraint_that_fires_at_commit_is_a_typed_answer(
    service: RunningService, researcher: Sender
) -> None:
    """R3: COMMIT itself fails; the answer is a problem, and nothing is left."""
    service.execute(
        "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE unique_violation; RETURN NULL; END $$"
    )
    service.execute(
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON note DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION late()"
    )
    failed = researcher.create("note-7")
    assert (failed.status_code, failed.json()["code"]) == (500, "internal")
    assert service.notes() == 0
    assert researcher.status("note-7")["state"] == "not_found"


def test_a_note_is_on_disk_before_its_receipt_is_out_whatever_the_database_prefers(
    notes_database: str, start_service: Callable[..., RunningService]
) -> None:
    """A receipt for a note that a power cut takes away would be a lie."""
    with psycopg.connect(notes_database, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(name))
        connection.execute(
            "CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF current_setting('synchronous_commit') <> 'on' THEN RAISE 'not durable'; END IF;"
            " RETURN NEW; END $$"
        )
        connection.execute("CREATE TRIGGER watch BEFORE INSERT ON note FOR EACH ROW EXECUTE FUNCTION watch()")
    assert start_service().principal().create("note-7").status_code == 201


def test_a_key_of_another_form_is_refused_before_any_lookup(
    service: RunningService, researcher: Sender
) -> None:
    """R2, R44, F7: nothing is generated in its place, and nothing is recorded."""
    for key in ("", '""', "a, b", '"a";p=1', "-a", "a" * 129, "a" * 1_000_000, "note 7"):
        refused = researcher.create(key)
        assert (refused.status_code, refused.json()["code"]) == (400, "idempotency_key_invalid"), key[:20]
    assert service.notes() == 0


def test_a_missing_or_repeated_key_is_refused(service: RunningService, researcher: Sender) -> None:
    """R2, R44: exactly one header line."""
    deadline = ("Operation-Deadline", moment(3600))
    missing = researcher.http.post("/v1/notes", json=arguments(), headers=[deadline])
    assert missing.json()["code"] == "idempotency_key_missing"
    twice = [deadline, ("Idempotency-Key", "note-7"), ("Idempotency-Key", "note-7")]
    refused = researcher.http.post("/v1/notes", json=arguments(), headers=twice)
    assert refused.json()["code"] == "idempotency_key_invalid"
    assert service.notes() == 0


def test_a_quoted_key_is_the_same_key(researcher: Sender) -> None:
    assert researcher.create('"note-7"').content == researcher.create("note-7").content


DOUBTFUL: list[tuple[bytes, str]] = [
    (b'{"folder":"drafts","title":"a","text":"b","title":"c"}', "the body"),
    (b'{"folder":"drafts","title":"a","text":NaN}', "text"),
    (b'{"folder":"drafts","title":"a","text":1e400}', "text"),
    (b'{"folder":"drafts","title":"a","text":"\\u0000"}', "text"),
    (b'{"folder":"drafts","title":"a","text":"\\ud800"}', "text"),
    (b'{"folder":"drafts","title":"a","text":"b","authorized":true}', "the body"),
    (b'{"folder":"drafts","title":"a","text":"b","tenant":"other"}', "the body"),
    (b'{"folder":"drafts","title":"a","text":"b","format":"html"}', "format"),
    (b'{"folder":"drafts","title":"' + b"t" * 301 + b'","text":"b"}', "title"),
    (b'{"folder":"drafts","title":"a"', "the body"),
    (b"[" * 100_000, "the body"),
    (b"\xef\xbb\xbf{}", "the body"),
    (b'{"folder":"drafts","title":"a","text":"\xff"}', "the body"),
    (b"", "the body"),
    (b"[]", "the body"),
    (b"null", "the body"),
    (b"1" * 10_000, "the body"),
]


def test_doubtful_json_is_refused_with_the_place(service: RunningService, researcher: Sender) -> None:
    headers = {
        "Idempotency-Key": "note-7",
        "Operation-Deadline": moment(3600),
        "Content-Type": "application/json",
    }
    for body, path in DOUBTFUL:
        refused = researcher.http.post("/v1/notes", content=body, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_argument"), body[:80]
        assert path in [error["path"] for error in refused.json()["errors"]], body[:80]
    assert service.notes() == 0


def test_a_deadline_that_is_no_moment_is_refused(researcher: Sender) -> None:
    for deadline in (
        "tomorrow",
        "2030-01-01",
        "2030-01-01T00:00:00",
        "2030-02-30T00:00:00Z",
        "9999-12-31T23:59:59-23:59",
        "",
    ):
        refused = researcher.create("note-7", headers={"Operation-Deadline": deadline})
        assert refused.json()["code"] == "deadline_invalid", deadline


def test_a_note_may_be_as_large_as_the_limit_and_no_larger(researcher: Sender) -> None:
    limit = 262_144
    assert researcher.create("note-7", text="é" * (limit // 2)).status_code == 201
    refused = researcher.create("note-8", text="é" * (limit // 2) + "x")
    assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
    assert f"{limit + 1} bytes; the limit is {limit}" in refused.json()["errors"][0]["message"]


def test_a_body_that_declares_no_length_is_cut_off_at_the_limit(
    start_service: Callable[..., RunningService],
) -> None:
    service = start_service(body_max_bytes=10_000)
    sender = service.principal()
    headers = {
        "Idempotency-Key": "note-7",
        "Operation-Deadline": moment(3600),
        "Content-Type": "application/json",
    }
    refused = sender.http.post("/v1/notes", content=iter([b" " * 4_000] * 4), headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (413, "too_large")


def test_an_old_key_after_the_purge_of_its_tombstone_is_expired(
    start_service: Callable[..., RunningService],
) -> None:
    """F11, R42: whatever the window is, no packet whose key was forgotten is executed."""
    service = start_service(admission_window_seconds=60)
    sender = service.principal()
    assert sender.create("note-7", deadline=moment(3600)).json()["code"] == "deadline_invalid"
    assert sender.create("note-7", deadline=moment(-1)).status_code == 410
    assert service.notes() == 0
    assert service.rows("SELECT * FROM operation_record") == []


def test_a_rate_that_is_used_up_answers_when_to_come_back(
    start_service: Callable[..., RunningService],
) -> None:
    service = start_service(rate_limit_per_token=1.0, batch_max_items=2)
    sender = service.principal()
    replies = [sender.create(f"note-{number}") for number in range(3)]
    assert [reply.status_code for reply in replies] == [201, 201, 429]
    body: dict[str, Any] = replies[2].json()
    assert (body["code"], body["attempt"]) == ("rate_limited", "not_executed")
    assert int(replies[2].headers["retry-after"]) == body["retry"]["after_s"] >= 1
    assert service.notes() == 2


def test_without_a_database_the_answer_is_busy_and_nothing_was_executed(
    start_service: Callable[..., RunningService],
) -> None:
    service = start_service(request_limit_seconds=3.0, lock_timeout_seconds=0.2)
    sender = service.principal()
    service.execute("ALTER TABLE token RENAME TO token_away")
    failed = sender.create("note-7")
    assert failed.json()["code"] == "internal"
    service.execute("ALTER TABLE token_away RENAME TO token")
    service.execute(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_sleep(10); RETURN NEW; END $$"
    )
    service.execute("CREATE TRIGGER slow BEFORE INSERT ON note FOR EACH ROW EXECUTE FUNCTION slow()")
    busy = sender.create("note-7")
    assert (busy.status_code, busy.json()["attempt"]) == (503, "not_executed")
    assert "retry-after" in busy.headers
    assert service.notes() == 0


@pytest.mark.parametrize("token", [None, "x", "oncebox_0123456789abcdef_" + "A" * 43])
def test_without_a_valid_token_the_answer_is_unauthenticated(
    service: RunningService, token: str | None
) -> None:
    refused = service.sender(token).create("note-7")
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
    assert refused.headers["www-authenticate"].startswith("Bearer")


def test_a_revoked_token_is_refused_at_once(service: RunningService, researcher: Sender) -> None:
    assert researcher.create("note-7").status_code == 201
    service.execute("UPDATE token SET revoked_at = clock_timestamp()")
    assert researcher.create("note-7").status_code == 401


def test_a_delegate_acts_only_for_principals_of_its_tenants(service: RunningService, worker: Sender) -> None:
    named = {"On-Behalf-Of": "demo/researcher"}
    assert worker.create("note-7").json()["code"] == "invalid_argument"
    assert worker.create("note-7", headers={"On-Behalf-Of": "demo"}).json()["code"] == "invalid_argument"
    assert worker.create("note-7", headers={"On-Behalf-Of": "other/x"}).json()["code"] == "unauthenticated"
    assert worker.create("note-7", headers={"On-Behalf-Of": "demo/nobody"}).status_code == 403
    assert worker.create("note-7", headers=named).status_code == 201
    (row,) = service.rows("SELECT tenant, principal, token_id FROM note_version")
    assert row[:2] == ("demo", "researcher")
    assert service.rows("SELECT principal FROM token WHERE id = %s", row[2]) == [("worker",)]


def test_a_principal_acts_for_nobody_else(researcher: Sender) -> None:
    other = researcher.create("note-7", headers={"On-Behalf-Of": "demo/writer"})
    assert other.json()["code"] == "unauthenticated"
    assert researcher.create("note-7", headers={"On-Behalf-Of": "demo/researcher"}).status_code == 201


def test_a_folder_is_checked_as_the_row_that_it_means(researcher: Sender) -> None:
    """The grant is looked up for the decoded path; the hash is over what was sent."""
    encoded = researcher.create("note-7", folder="dra%66ts")
    assert encoded.json()["note"]["folder"] == "drafts"
    assert researcher.create("note-7").status_code == 422
    assert researcher.create("note-8", folder="dra%2566ts").status_code == 403
    assert researcher.create("note-9", folder="drafts%2F..%2Fdrafts").json()["code"] == "invalid_argument"


def test_a_folder_that_is_not_there_and_one_of_somebody_else_answer_alike(
    service: RunningService, researcher: Sender
) -> None:
    service.grant("secret", "writer")
    hidden, absent = researcher.create("a", folder="secret"), researcher.create("a", folder="nowhere")
    assert hidden.content == absent.content
    assert hidden.json()["permitted_folders"] == ["drafts"]


def test_garbage_on_the_socket_does_not_stop_the_service(service: RunningService, researcher: Sender) -> None:
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(b"\x00\xff not http\r\n\r\n")
        raw.recv(1000)
    assert researcher.create("note-7").status_code == 201
