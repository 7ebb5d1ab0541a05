"""The three boundaries: before the receiver's commit, after it, and many deliveries of one key at once.

Each ends with one note, and nothing untrue is said on the way (see ``witness``).
"""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import httpx2
import pytest

from tests.acceptance.endings import assert_one_note_for_good, frozen_arguments
from tests.acceptance.ledger import Request
from tests.acceptance.town import Town
from tests.acceptance.witness import Witness
from tests.support.faultproxy import Exchange, FaultProxy
from tests.support.polling import eventually

DELIVERIES = 32


def test_kill_9_of_the_note_service_before_its_commit_ends_with_one_note(town: Town) -> None:
    """R14, R15: the transaction dies with its executor; the key is busy until then, and the retry executes."""
    with town.notes_frozen_before_commit():
        town.save("before-1")
        with Witness(town, "before-1") as witness:
            eventually(lambda: town.notes.waiting(relation="note_version"), timeout=20)
            town.kill_notes()
            assert town.notes.notes_of("before-1") == []
            town.open_notes()
            # The database session of the killed service still holds the key, and nobody knows how it ends.
            eventually(lambda: "in_progress" in outcomes(town, "before-1"), timeout=20)
    with Witness(town, "before-1"):
        assert_one_note_for_good(town, "before-1")

    assert outcomes(town, "before-1")[0] == "unknown"
    assert set(witness.states()) <= {"pending", "sending", "unknown"}


@pytest.mark.parametrize("loses_it", ["hang", "reset", "cut"])
def test_a_reply_dropped_after_the_commit_ends_with_one_note(town: Town, loses_it: str) -> None:
    """F1, R26, R50: whether the client hangs, is reset or gets half a reply, it asks and finds the note."""
    key = f"{loses_it}-7"
    lost = lose_next_reply(town.proxy, loses_it)
    town.save(key)
    with Witness(town, key) as witness:
        town.wait(key)

    assert [exchange.status for exchange in lost] == [200]
    assert outcomes(town, key) == ["unknown", "receipt"]
    assert town.log.conversation(key) == ["batch", "status"]
    assert witness.states()[-1] == "saved"
    if loses_it == "hang":
        assert_one_note_for_good(town, key)
    else:
        assert len(town.notes.notes_of(key)) == 1


def test_32_deliveries_of_one_key_at_once_end_with_one_note(town: Town) -> None:
    """R1, R4: the worker's own delivery and 31 more of the same bytes, with its token, released together: one
    executes while at least 8 wait for it in the receiver; the others replay or are told to come again."""
    together = town.proxy.hold(DELIVERIES, match="POST /v1/notes*")
    town.save("thirty-2")
    arguments = frozen_arguments(town, "thirty-2")
    with (
        Witness(town, "thirty-2"),
        ThreadPoolExecutor(DELIVERIES) as pool,
        town.notes_frozen_before_commit() as frozen,
    ):
        replies = [
            pool.submit(town.receiver.create, "thirty-2", arguments, url=town.proxy.url)
            for _ in range(DELIVERIES - 1)
        ]
        together.wait_until_full()
        eventually(lambda: town.notes.waiting() >= 8, timeout=20, what="8 wait for the key")
        frozen.close()
        verdicts = [verdict(reply.result(60)) for reply in replies]
        town.wait("thirty-2")

    (batch,) = [
        exchange for exchange in town.proxy.requests("POST /v1/notes:batch") if b"thirty-2" in exchange.body
    ]
    assert batch.reply_body is not None
    (item,) = json.loads(batch.reply_body)["items"]
    verdicts.append(item_verdict(item))
    assert verdicts.count("executed") == 1, verdicts
    assert set(verdicts) <= {"executed", "replayed", "in progress"}
    assert waiting_together([r for r in town.log.requests() if "thirty-2" in r.keys]) >= 8
    assert_one_note_for_good(town, "thirty-2")


def outcomes(town: Town, operation_id: str) -> list[str]:
    return [outcome for _, outcome, _ in town.sender.outcomes(operation_id)]


def lose_next_reply(proxy: FaultProxy, how: str) -> list[Exchange]:
    match how:
        case "cut":
            # Even after the status line: half an answer is no answer.
            return proxy.truncate_replies(120, match="POST /v1/notes:batch").struck
        case _:
            then = "hang" if how == "hang" else "reset"
            return proxy.swallow_replies(match="POST /v1/notes:batch", then=then).struck


def verdict(reply: httpx2.Response) -> str:
    match reply.status_code:
        case 201:
            return "replayed" if "idempotent-replayed" in reply.headers else "executed"
        case 409 if reply.json()["code"] == "operation_in_progress":
            return "in progress"
        case _:
            return f"{reply.status_code} {reply.text}"


def item_verdict(item: dict[str, object]) -> str:
    match item["status"]:
        case 201:
            return "replayed" if item["replayed"] else "executed"
        case 409:
            return "in progress"
        case _:
            return str(item)


def waiting_together(requests: list[Request]) -> int:
    """The most requests that were open at the same time, by the receiver's log."""
    changes: list[tuple[datetime, int]] = []
    for request in requests:
        ended = datetime.fromisoformat(request.ended_at)
        changes += [(ended - timedelta(milliseconds=request.duration_ms), 1), (ended, -1)]
    open_now = most = 0
    for _, change in sorted(changes):
        open_now += change
        most = max(most, open_now)
    return most
