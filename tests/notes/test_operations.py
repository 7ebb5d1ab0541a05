"""The state of keys, seals, and the end of tombstones."""

from collections.abc import Callable
from typing import Any

import psycopg

from oncebox_notes import purging, statements
from tests.notes.running import RunningService, Sender, item, moment


def purge(service: RunningService) -> int | None:
    with service.connect() as connection:
        return purging.purge_tombstones(connection, service.settings.admission_window_seconds)


def age(service: RunningService, hours: int) -> None:
    """All tombstones were made that many hours ago, with a deadline a minute later."""
    service.execute(
        "UPDATE operation_record SET created_at = now() - make_interval(hours => %s),"
        " deadline = now() - make_interval(hours => %s) + interval '1 minute' WHERE state = 'sealed'",
        hours,
        hours,
    )


def test_a_sealed_key_is_never_executed(service: RunningService, researcher: Sender) -> None:
    sealed = researcher.seal("note-7")
    assert (sealed.status_code, sealed.json()["state"]) == (200, "sealed")
    refused = researcher.create("note-7")
    assert (refused.status_code, refused.json()["operation_state"]) == (409, "sealed")
    assert researcher.batch(item("note-7"))[0]["status"] == 409
    assert service.notes() == 0


def test_a_seal_is_idempotent_and_needs_no_grant_and_no_future_deadline(service: RunningService) -> None:
    sender = service.sender(service.token("nobody"))
    assert [sender.seal("note-7", deadline=moment(-60)).json()["state"] for _ in range(2)] == ["sealed"] * 2


def test_a_later_seal_keeps_the_tombstone_for_its_own_deadline(
    service: RunningService, researcher: Sender
) -> None:
    """The second promise must outlive a packet with the second deadline."""
    researcher.seal("note-7", deadline=moment(60))
    researcher.seal("note-7", deadline=moment(3600))
    researcher.seal("note-7", deadline=moment(60))
    later = "SELECT deadline > now() + interval '50 minutes' FROM operation_record"
    assert service.rows(later) == [(True,)]


def test_a_seal_with_the_hash_makes_other_arguments_a_conflict(researcher: Sender) -> None:
    made = researcher.create("note-1").json()
    sealed = researcher.http.post(
        "/v1/operations:seal",
        json={"items": [{"operation_id": "note-7", "deadline": moment(60), "args_hash": made["args_hash"]}]},
    ).json()["items"][0]
    assert (sealed["state"], sealed["args_hash"]) == ("sealed", made["args_hash"])
    assert researcher.create("note-7").json()["code"] == "operation_sealed"
    assert researcher.create("note-7", text="Changed.").json()["code"] == "argument_conflict"


def test_many_seals_answer_each_in_its_place(service: RunningService, researcher: Sender) -> None:
    """A key that stays busy is in progress; it holds up no other."""
    researcher.create("note-1")
    wanted: list[Any] = [
        {"operation_id": key, "deadline": moment(60)} for key in ("note-1", "note-2", "note-3", "note-2")
    ]
    with service.held_key("note-3"):
        reply = researcher.http.post("/v1/operations:seal", json={"items": [*wanted, {"operation_id": "x"}]})
    found = reply.json()["items"]
    assert [part["operation_id"] for part in found] == ["note-1", "note-2", "note-3", "note-2", "x"]
    assert [part.get("state") or part["problem"]["code"] for part in found] == [
        "completed",
        "sealed",
        "operation_in_progress",
        "invalid_argument",
        "deadline_missing",
    ]


def test_status_of_many_keeps_the_order_and_answers_a_key_twice(researcher: Sender) -> None:
    researcher.create("note-1")
    asked = [{"operation_id": key} for key in ("note-2", "note-1", "note-2", " ")]
    reply = researcher.http.post("/v1/operations:status", json={"operations": asked}).json()
    found = reply["items"]
    assert [part.get("state") or part["problem"]["code"] for part in found] == [
        "not_found",
        "completed",
        "not_found",
        "idempotency_key_invalid",
    ]
    assert found[1] | {"as_of": ""} == researcher.status("note-1") | {"as_of": ""}
    assert reply["as_of"] == found[0]["as_of"]


def test_a_key_may_end_in_what_looks_like_an_action(researcher: Sender) -> None:
    assert researcher.create("a:seal").status_code == 201
    assert researcher.status("a:seal")["state"] == "completed"
    assert researcher.seal("a:seal").json()["operation_id"] == "a:seal"
    assert researcher.status("a")["state"] == "not_found"


def test_tombstones_outlive_every_packet_that_can_be_admitted(
    service: RunningService, researcher: Sender
) -> None:
    """R42: a window of 7 days and a day more; a later deadline would keep it longer."""
    researcher.seal("note-7")
    age(service, 8 * 24 - 1)
    assert purge(service) == 0
    age(service, 8 * 24 + 1)
    assert purge(service) == 1
    assert researcher.status("note-7")["state"] == "not_found"


def test_completed_records_are_never_purged(service: RunningService, researcher: Sender) -> None:
    """F11: however late a message is replayed, its key is remembered: the receipt, and nothing is executed."""
    first = researcher.create("note-7")
    service.execute("UPDATE operation_record SET created_at = now() - interval '10 years'")
    assert purge(service) == 0
    assert researcher.create("note-7").json()["note"]["id"] == first.json()["note"]["id"]


def test_the_purge_leaves_a_key_that_is_in_use(service: RunningService, researcher: Sender) -> None:
    """It takes keys by try-lock: it neither waits nor removes a tombstone under somebody's eyes."""
    researcher.seal("note-1")
    researcher.seal("note-2")
    age(service, 30 * 24)
    with service.held_key("note-1"):
        assert purge(service) == 1
    assert researcher.status("note-1")["state"] == "sealed"


class Interleaved(psycopg.Connection[tuple[Any, ...]]):
    """A connection on which something happens just before the purge takes its keys."""

    before_locking: Callable[[], object]

    def execute(self, query: Any, *arguments: Any, **options: Any) -> psycopg.Cursor[tuple[Any, ...]]:
        if query is statements.KEY_LOCK_TRY:
            self.before_locking()
        return super().execute(query, *arguments, **options)


def test_a_tombstone_that_is_prolonged_while_the_purge_looks_at_it_stays(
    service: RunningService, researcher: Sender
) -> None:
    """Its age is judged once its key is held: a second seal may have promised more by then."""
    researcher.seal("note-7")
    age(service, 30 * 24)
    with Interleaved.connect(service.database_url, autocommit=True) as connection:
        connection.before_locking = lambda: researcher.seal("note-7", deadline=moment(3600))
        assert purging.purge_tombstones(connection, service.settings.admission_window_seconds) == 0
    assert researcher.create("note-7").json()["code"] == "operation_sealed"


def test_one_purge_runs_at_a_time(service: RunningService) -> None:
    with service.connect() as connection:
        connection.execute("SELECT pg_advisory_lock(hashtextextended('purge', 0))")
        assert purge(service) is None
