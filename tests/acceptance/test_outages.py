"""While something is down: nothing is lost, nothing is spent, and what is said stays true."""

import json
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.acceptance import brokers
from tests.acceptance.brokers import Broker
from tests.acceptance.town import Town
from tests.support import processes
from tests.support.databases import ROOT
from tests.support.polling import eventually

BUSY = {
    "type": "urn:oncebox:problem:busy",
    "title": "Busy",
    "status": 503,
    "detail": "Nothing was executed: maintenance. Send the same request again after the given time.",
    "code": "busy",
    "attempt": "not_executed",
    "operation_state": "unknown",
    "retry": {"same_key": True, "new_key": False, "after_s": 1},
    "errors": [],
}

TURNED_AWAY = "SELECT count(*) FROM oncebox.outbox_entry WHERE last_reason = 'connect_refused'"


def test_a_stopped_note_service_leaves_pending_operations_and_costs_no_attempt(new_town: Town) -> None:
    """F5, F6: enqueue works, status says pending and why, lag grows; started again everything drains, and the
    attempts are exactly the operations that the receiver's log counts."""
    town = new_town
    ids = [f"outage-{number}" for number in range(20)]
    town.open(notes_url=town.notes_url)
    town.close_notes()

    town.save_many(ids)
    eventually(
        lambda: town.sender.value(TURNED_AWAY) == len(ids),
        timeout=20,
        what=lambda: str(town.sender.rows("SELECT * FROM oncebox.outbox_entry")),
    )
    first = json.loads(town.oncebox("lag", "--json").stdout)
    for _ in range(10):
        # An attempt is counted while its call is under way, and given back: nothing can have been sent.
        resting = town.sender.rows("SELECT attempts FROM oncebox.outbox_entry WHERE lease_until IS NULL")
        assert set(resting) <= {(0,)}
        states = {str(town.status(id).state) for id in ids[:4]}
        assert states <= {"pending", "sending"}, states
    told = eventually(lambda: s if (s := town.status(ids[0])).state == "pending" else None, timeout=10)
    assert told is not None
    assert told.say.startswith("NOT SENT YET:")
    assert "connect_refused" in told.say
    second = json.loads(town.oncebox("lag", "--json").stdout)
    assert [look["entries"] for look in (first, second)] == [20, 20]
    assert 0 < first["oldest_age_s"] < second["oldest_age_s"]
    assert town.oncebox("lag", "--max-age", "1s").returncode == 8
    eventually(lambda: town.sender.attempts() == 0, what="what was counted at a claim is given back")

    town.open_notes()
    town.drain()
    assert town.sender.states() == {"saved": 20}
    assert town.notes.count() == 20
    assert town.sender.attempts() == town.log.operations_sent() == 20


@pytest.fixture(params=["rabbitmq", "valkey"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Broker, None, None]:
    if request.param == "valkey":
        with brokers.valkey(tmp_path / "valkey") as made:
            yield made
    else:
        with brokers.rabbitmq(request.getfixturevalue("broker_url")) as made:
            yield made


def test_100_enqueues_commit_with_broker_and_note_service_down(
    build_town: Callable[..., Town], broker: Broker
) -> None:
    """F17: with the broker frozen and the note service stopped the agent notices nothing: it opens no socket but
    PostgreSQL's, loads no client of either, and all is delivered once both are back."""
    town = build_town(broker.url)
    town.open()
    town.close_notes()
    port = urlsplit(town.places.sender_database).port or 5432
    with broker.frozen():
        began = time.monotonic()
        agent = processes.run(
            [sys.executable, "-m", "tests.acceptance.agent", "watched", "100", str(port)],
            env=town.environment,
            cwd=ROOT,
        )
        took_s = time.monotonic() - began
        assert agent.returncode == 0, agent.stderr
        assert json.loads(agent.stdout) == {
            "committed": 100,
            "attempted": [],
            "other_sockets": [],
            "looks_with_the_database_socket": 100,
            "network_modules": [],
        }
        assert took_s < 20
        assert town.sender.live() == 100
        assert town.sender.attempts() == 0

    town.open_notes()
    town.drain()
    assert town.sender.states() == {"saved": 100}
    assert town.notes.count() == 100


def test_broker_connections_that_break_under_load_repeat_nothing(
    build_town: Callable[..., Town], broker: Broker
) -> None:
    """F21: publishes in doubt, acknowledgements that never arrived, messages delivered twice: what was sent is not
    sent again, and what was lost is published again from the outbox."""
    town = build_town(broker.url, chunk=5, redispatch_s=2.0)
    town.open()
    for begin in range(0, 400, 100):
        town.save_many([f"cut-{number}" for number in range(begin, begin + 100)])
        eventually(lambda enough=begin + 20: town.notes.count() >= enough, timeout=30, interval=0.005)
        assert broker.cut() >= 2, "the relay's connection and the worker's"
    town.drain()
    assert town.sender.states() == {"saved": 400}
    assert town.notes.count() == 400
    assert town.sender.attempts() == town.log.operations_sent() == 400


def test_a_receiver_that_is_busy_for_seconds_costs_no_operation(new_town: Town) -> None:
    """F25, F26: 500 operations meet 503 for a while, far more often than their budget of calls without a verdict
    allows; they count as lag all the time, and every one is saved afterwards."""
    town = new_town
    body = json.dumps(BUSY).encode()
    head = (
        f"HTTP/1.1 503 Busy\r\nContent-Type: application/problem+json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    busy = town.proxy.answer(head.encode() + body, 100_000, match="POST /v1/notes:batch")
    town.open(budget=2)
    ids = [f"busy-{number}" for number in range(500)]
    town.save_many(ids)
    retries = "SELECT min(retries) FROM oncebox.outbox_entry"
    eventually(lambda: town.sender.value(retries) >= 3, timeout=30, what="each was turned away three times")
    assert town.sender.states() == {"live": 500}
    assert town.status("busy-0").state in ("retrying", "sending")
    assert town.sender.value("SELECT count(*) FROM oncebox.outbox_entry WHERE wanted <> 'deliver'") == 0

    busy.left = 0
    town.drain()
    assert town.sender.states() == {"saved": 500}
    assert town.notes.count() == 500
    assert town.log.operations_sent() == 500
