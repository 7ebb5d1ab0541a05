"""Competitors for one key, a note service that loses its database session, grants that change meanwhile."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx2

from oncebox_notes import administration, statements
from tests.notes.running import RunningService, Sender, item, moment
from tests.support.polling import eventually


def test_32_requests_with_one_key_make_one_note(service: RunningService, researcher: Sender) -> None:
    """R1, R4, R5, R7: one execution; the others replay its bytes or are told that it is in progress."""
    barrier = threading.Barrier(32)

    def send(_: int) -> httpx2.Response:
        barrier.wait()
        return researcher.create("note-7")

    with ThreadPoolExecutor(32) as pool:
        replies = list(pool.map(send, range(32)))
    made = [reply for reply in replies if reply.status_code == 201]
    executed = [reply for reply in made if "idempotent-replayed" not in reply.headers]
    assert len(executed) == 1
    assert {reply.content for reply in made} == {executed[0].content}
    assert {reply.status_code for reply in replies} <= {201, 409, 503}
    assert service.notes() == 1


def test_batches_with_one_key_make_one_note(service: RunningService, researcher: Sender) -> None:
    """R1: in a batch a busy key is that item's 409, and nothing waits."""
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda number: researcher.batch(item(f"own-{number}"), item("note-7")), range(8))
        )
    outcomes = [answer[1] for answer in answers]
    executed = [found for found in outcomes if found["status"] == 201 and not found["replayed"]]
    assert len(executed) == 1
    assert {found["status"] for found in outcomes} <= {201, 409}
    assert [answer[0]["status"] for answer in answers] == [201] * 8
    assert service.notes() == 9


def test_a_waiter_sees_what_the_winner_committed(service: RunningService, researcher: Sender) -> None:
    """R6, R9: the record is read in a new statement after the wait, so it is a replay and no error."""
    with ThreadPoolExecutor(1) as pool:
        with service.held_key("note-7"):
            waiting = pool.submit(researcher.create, "note-7")
            service.wait_for_waiting()
            service.execute(
                "INSERT INTO operation_record (tenant, principal, key, state, created_at, deadline)"
                " VALUES ('demo', 'researcher', 'note-7', 'sealed', now(), now())"
            )
        assert waiting.result().json()["code"] == "operation_sealed"


def code_of(reply: httpx2.Response) -> tuple[int, str | None]:
    """Status and problem code; a receipt has none."""
    return reply.status_code, reply.json().get("code")


def test_a_waiter_is_answered_by_the_record_whatever_its_grant_is_by_now(
    service: RunningService, researcher: Sender
) -> None:
    """The record is read after the wait and before the grant: a receipt is not hidden by a refusal."""
    with ThreadPoolExecutor(1) as pool:
        with service.held_key("note-7"):
            waiting = pool.submit(researcher.create, "note-7")
            service.wait_for_waiting()
            service.execute(
                "INSERT INTO operation_record (tenant, principal, key, state, created_at, deadline)"
                " VALUES ('demo', 'researcher', 'note-7', 'sealed', now(), now())"
            )
            service.revoke()
        assert code_of(waiting.result()) == (409, "operation_sealed")


def test_a_record_that_came_past_the_key_lock_still_lets_nothing_be_executed(
    service: RunningService, researcher: Sender
) -> None:
    """The last line of defence: a request that has looked for a record already, and found none, writes nothing
    for a key that has one by then."""
    wanted = {"tenant": "demo", "principal": "researcher", "folder": "drafts"}
    with ThreadPoolExecutor(1) as pool:
        with service.connect(autocommit=False) as holder:
            holder.execute(statements.GRANT_LOCK_EXCLUSIVE, wanted)
            write = pool.submit(researcher.create, "note-7")
            service.wait_for_waiting()
            service.execute(
                "INSERT INTO operation_record (tenant, principal, key, state, created_at, deadline)"
                " VALUES ('demo', 'researcher', 'note-7', 'sealed', now(), now())"
            )
        assert code_of(write.result()) == (409, "operation_sealed")
    assert service.notes() == 0
    assert service.rows("SELECT state FROM operation_record") == [("sealed",)]


def test_a_request_whose_deadline_passes_while_it_waits_is_not_executed(
    start_service: Callable[..., RunningService],
) -> None:
    """The clock is read once the key is held: what the sender gave up meanwhile must not become a note."""
    service = start_service(lock_timeout_seconds=4.5)
    researcher, deadline = service.principal(), moment(1.5)
    with ThreadPoolExecutor(1) as pool:
        with service.held_key("note-7"):
            waiting = pool.submit(researcher.create, "note-7", deadline=deadline)
            service.wait_for_waiting()
            passed = "SELECT clock_timestamp() > %s::timestamptz"
            eventually(lambda: service.rows(passed, deadline)[0][0], what="the deadline passes")
        assert code_of(waiting.result()) == (410, "operation_expired")
    assert service.notes() == 0
    assert service.rows("SELECT * FROM operation_record") == []


def test_a_wait_ends_after_the_lock_timeout_with_409(service: RunningService, researcher: Sender) -> None:
    """R11: never for ever; and afterwards the key is usable at once."""
    with service.held_key("note-7"):
        refused = researcher.create("note-7")
    assert (refused.status_code, refused.json()["code"]) == (409, "operation_in_progress")
    assert refused.json()["operation_state"] == "in_progress"
    assert int(refused.headers["retry-after"]) >= 1
    assert researcher.create("note-7").status_code == 201


def _hold_inserts(service: RunningService) -> None:
    """An insert of a note waits for the advisory lock 7 that a test holds."""
    service.execute(
        "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NEW; END $$"
    )
    service.execute("CREATE TRIGGER hold BEFORE INSERT ON note FOR EACH ROW EXECUTE FUNCTION hold()")


def test_a_lost_session_leaves_the_key_free_at_once(service: RunningService, researcher: Sender) -> None:
    """R14, R15: in progress is the lock, and the lock ends with the session: no time to wait for."""
    _hold_inserts(service)
    with ThreadPoolExecutor(1) as pool, service.connect() as holder:
        holder.execute("SELECT pg_advisory_lock(7)")
        pending = pool.submit(researcher.create, "note-7")
        service.wait_for_waiting()
        assert researcher.status("note-7")["state"] == "in_progress"
        holder.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'oncebox-notes'"
            " AND wait_event_type = 'Lock' AND datname = current_database()"
        )
        lost = pending.result()
        assert (lost.status_code, lost.json()["attempt"]) == (503, "not_executed")
        holder.execute("SELECT pg_advisory_unlock(7)")
    retry = researcher.create("note-7")
    assert retry.status_code == 201
    assert "idempotent-replayed" not in retry.headers
    assert service.notes() == 1


def test_sessions_that_died_in_the_pool_cost_no_request(service: RunningService, researcher: Sender) -> None:
    """A restart of the database between two requests is not seen by the second."""
    researcher.create("note-1")
    service.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'oncebox-notes' AND datname = current_database()"
    )
    assert researcher.create("note-2").status_code == 201


def test_a_competitor_with_other_arguments_waits_and_learns_of_the_conflict(
    service: RunningService, researcher: Sender
) -> None:
    """F32: while the first may still fail, nothing definite is said; then it is 422 and not 409."""
    _hold_inserts(service)
    with ThreadPoolExecutor(2) as pool, service.connect() as holder:
        holder.execute("SELECT pg_advisory_lock(7)")
        first = pool.submit(researcher.create, "note-7")
        service.wait_for_waiting(1)
        second = pool.submit(researcher.create, "note-7", text="Changed.")
        service.wait_for_waiting(2)
        holder.execute("SELECT pg_advisory_unlock(7)")
        assert first.result().status_code == 201
        assert second.result().status_code == 422


def test_a_write_that_has_its_grant_commits_before_the_revocation(
    service: RunningService, researcher: Sender
) -> None:
    """The revocation waits for the write, and its time is later."""
    _hold_inserts(service)
    with ThreadPoolExecutor(2) as pool, service.connect() as holder:
        holder.execute("SELECT pg_advisory_lock(7)")
        write = pool.submit(researcher.create, "note-7")
        service.wait_for_waiting(1)
        revocation = pool.submit(service.revoke)
        service.wait_for_waiting(2)
        assert not revocation.done()
        holder.execute("SELECT pg_advisory_unlock(7)")
        assert write.result().status_code == 201
        revocation.result()
    query = (
        "SELECT g.granted_at <= v.created_at AND v.created_at <= g.revoked_at"
        " FROM note_version v JOIN folder_grant g ON g.id = v.grant_id"
    )
    assert service.rows(query) == [(True,)]


def test_a_write_that_meets_a_revocation_waits_for_it_and_is_refused(
    service: RunningService, researcher: Sender
) -> None:
    """The grant is read in a new statement after the wait: a revoked one does not count any more."""
    wanted = {"tenant": "demo", "principal": "researcher", "folder": "drafts"}
    with ThreadPoolExecutor(1) as pool:
        with service.connect(autocommit=False) as revoker:
            revoker.execute(statements.GRANT_LOCK_EXCLUSIVE, wanted)
            write = pool.submit(researcher.create, "note-7")
            service.wait_for_waiting()
            revoker.execute(statements.GRANT_REVOKE, wanted)
        assert write.result().status_code == 403
    assert service.notes() == 0


def test_a_note_is_not_older_than_the_grant_that_allowed_it(service: RunningService) -> None:
    """A write that began before the grant and waited for it has its time from after the wait."""
    wanted = {"tenant": "demo", "principal": "researcher", "folder": "drafts"}
    sender = service.sender(service.token())
    with ThreadPoolExecutor(1) as pool:
        with service.connect(autocommit=False) as granter:
            granter.execute(statements.FOLDER_CREATE, wanted)
            granter.execute(statements.GRANT_LOCK_EXCLUSIVE, wanted)
            write = pool.submit(sender.create, "note-7")
            service.wait_for_waiting()
            granter.execute(statements.GRANT_ADD, wanted)
        assert write.result().status_code == 201
    query = "SELECT v.created_at >= g.granted_at FROM note_version v JOIN folder_grant g ON g.id = v.grant_id"
    assert service.rows(query) == [(True,)]


def test_a_revocation_gets_its_turn_among_many_writers(service: RunningService, researcher: Sender) -> None:
    """Writers that come later queue behind it, so it does not starve."""
    stop = threading.Event()

    def write(number: int) -> None:
        count = 0
        while not stop.is_set():
            researcher.create(f"note-{number}-{count}")
            count += 1

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, number) for number in range(4)]
        try:
            eventually(lambda: service.notes() > 20, what="the writers are at work")
            with service.connect() as connection:
                connection.execute("SET lock_timeout = '3s'")
                administration.revoke_grant(connection, "demo", "researcher", "drafts")
            count = service.notes()
        finally:
            stop.set()
        for writer in writers:
            writer.result()
    assert service.notes() == count


def test_status_says_in_progress_while_a_transaction_lives_and_then_what_it_did(
    service: RunningService, researcher: Sender
) -> None:
    _hold_inserts(service)
    with ThreadPoolExecutor(1) as pool, service.connect() as holder:
        holder.execute("SELECT pg_advisory_lock(7)")
        pending = pool.submit(researcher.create, "note-7")
        service.wait_for_waiting()
        assert researcher.status("note-7")["state"] == "in_progress"
        assert researcher.status("note-8")["state"] == "not_found"
        holder.execute("SELECT pg_advisory_unlock(7)")
        pending.result()
    assert researcher.status("note-7")["state"] == "completed"


def test_a_seal_waits_for_a_live_transaction_and_answers_with_its_note(
    service: RunningService, researcher: Sender
) -> None:
    _hold_inserts(service)
    with ThreadPoolExecutor(2) as pool, service.connect() as holder:
        holder.execute("SELECT pg_advisory_lock(7)")
        write = pool.submit(researcher.create, "note-7")
        service.wait_for_waiting(1)
        sealing = pool.submit(researcher.seal, "note-7")
        service.wait_for_waiting(2)
        holder.execute("SELECT pg_advisory_unlock(7)")
        assert sealing.result().json()["note"] == write.result().json()["note"]


def test_seals_and_writes_of_the_same_keys_end_one_way_each(
    service: RunningService, researcher: Sender, worker: Sender
) -> None:
    """Whichever comes first holds: no key is both sealed and a note."""
    keys = [f"note-{number}" for number in range(40)]
    deadline = item("x")["deadline"]

    def seal() -> httpx2.Response:
        items = [{"operation_id": key, "deadline": deadline} for key in reversed(keys)]
        return researcher.http.post("/v1/operations:seal", json={"items": items})

    with ThreadPoolExecutor(2) as pool:
        sealing = pool.submit(seal)
        written = researcher.batch(*[item(key) for key in keys])
        sealed = {found["operation_id"]: found for found in sealing.result().json()["items"]}
    for answer in written:
        state = researcher.status(answer["operation_id"])["state"]
        if answer["status"] == 201:
            assert state == "completed"
        if sealed[answer["operation_id"]].get("state"):
            assert sealed[answer["operation_id"]]["state"] == state
    completed = service.rows("SELECT count(*) FROM operation_record WHERE state = 'completed'")
    assert completed == [(service.notes(),)]
