"""A revocation among many writers: what they were told, and when each note was made."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.notes.running import item
from tests.proof.security.house import OUTSIDE_ITS_GRANT, House, Party, fresh_key


@dataclass(frozen=True, slots=True)
class Asked:
    """One write: when it was sent and answered, by one clock, and with what."""

    key: str
    sent: float
    answered: float
    status: int


@dataclass(frozen=True, slots=True)
class Span:
    """From when and until when something held for certain, by the same clock."""

    begins: float
    ends: float

    def holds_all_of(self, asked: Asked) -> bool:
        return self.begins < asked.sent and asked.answered < self.ends


SECONDS = 6.0
WRITERS = 6


def test_under_load_no_note_lies_outside_its_grant(house: House, party: Party) -> None:
    """Six writers, alone and in batches, while the grant is taken back and given again all the time: each revocation
    gets its turn, no write that began after one had ended is admitted before the next grant, and those that were
    admitted have their time within their grant."""
    over, answers = threading.Event(), list[Asked]()

    def write(number: int) -> None:
        while not over.is_set():
            sent, keys = time.monotonic(), [fresh_key("load") for _ in range(1 + number % 3)]
            if len(keys) == 1:
                statuses = [party.sender.create(keys[0]).status_code]
            else:
                statuses = [found["status"] for found in party.sender.batch(*map(item, keys))]
            answered = time.monotonic()
            answers.extend(
                Asked(key, sent, answered, status) for key, status in zip(keys, statuses, strict=True)
            )

    granted, revoked = list[Span](), list[Span]()
    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [pool.submit(write, number) for number in range(WRITERS)]
        try:
            end, since = time.monotonic() + SECONDS, time.monotonic()
            while time.monotonic() < end:
                time.sleep(0.1)
                granted.append(Span(since, time.monotonic()))
                house.revoke("drafts", party.principal, tenant=party.tenant)
                since = time.monotonic()
                time.sleep(0.1)
                revoked.append(Span(since, time.monotonic()))
                house.grant("drafts", party.principal, tenant=party.tenant)
                since = time.monotonic()
        finally:
            over.set()
        for writer in writers:
            writer.result(30)

    assert {asked.status for asked in answers} <= {201, 403, 503}
    after_a_revocation = [asked for asked in answers if any(span.holds_all_of(asked) for span in revoked)]
    under_a_grant = [asked for asked in answers if any(span.holds_all_of(asked) for span in granted)]
    assert len(revoked) >= 5
    assert len(after_a_revocation) > 20
    assert len(under_a_grant) > 20
    assert {asked.status for asked in after_a_revocation} == {403}
    assert {asked.status for asked in under_a_grant} <= {201, 503}

    assert house.rows(OUTSIDE_ITS_GRANT) == []
    keys = [asked.key for asked in answers]
    written = {
        key
        for (key,) in house.rows("SELECT operation_key FROM note_version WHERE operation_key = ANY(%s)", keys)
    }
    assert written == {asked.key for asked in answers if asked.status == 201}
    records = house.rows("SELECT key FROM operation_record WHERE key = ANY(%s)", keys)
    assert {key for (key,) in records} == written


def test_the_check_of_the_load_finds_a_note_outside_its_grant(house: House, party: Party) -> None:
    """The question that the load test asks is one that can be answered with a note."""
    key = fresh_key()
    assert party.sender.create(key).status_code == 201
    outside = "UPDATE note_version SET created_at = created_at + %s::interval WHERE operation_key = %s"
    house.revoke("drafts", party.principal, tenant=party.tenant)
    for shift in ("1 hour", "-2 hours"):
        house.execute(outside, shift, key)
        assert [row[0] for row in house.rows(OUTSIDE_ITS_GRANT)] == [key]
    house.execute(outside, "1 hour", key)
    assert house.rows(OUTSIDE_ITS_GRANT) == []
    house.execute("UPDATE note_version SET grant_id = 1 WHERE operation_key = %s", key)
    assert [row[0] for row in house.rows(OUTSIDE_ITS_GRANT)] == [key]
    house.execute(
        "UPDATE note_version SET grant_id = (SELECT max(id) FROM folder_grant WHERE principal = 'researcher'"
        " AND tenant = 'demo' AND revoked_at IS NOT NULL) WHERE operation_key = %s",
        key,
    )
