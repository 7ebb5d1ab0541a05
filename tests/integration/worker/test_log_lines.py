"""What relays and workers print: one JSON object a line, with no token and nothing of a note."""

from collections.abc import Generator

import pytest

from tests.integration.worker import parties
from tests.integration.worker.parties import CANARY, Sender, events, log_lines, write
from tests.notes.running import RunningService
from tests.support.faultproxy import FaultProxy
from tests.support.processes import Processes


@pytest.fixture
def receiver(service: RunningService) -> Generator[FaultProxy]:
    with FaultProxy(service.url) as made:
        yield made


def test_every_line_is_json_and_none_shows_a_note_or_a_token(
    sender: Sender, service: RunningService, receiver: FaultProxy, token: str, processes: Processes
) -> None:
    """At level debug, through success, refusal, garbage in place of an answer, a lost reply, a row that the database
    refuses (it shows the row), and an orderly end; with the secrets of both addresses."""
    environment = sender.environment(
        receiver.url, token, ONCEBOX_LOG_LEVEL="debug", ONCEBOX_RETRY_BASE_S="0.05"
    )
    worker = parties.start_worker(processes, environment)
    relay = parties.start_relay(processes, environment)
    receiver.answer(
        f"HTTP/1.1 500 No\r\ncontent-length: 40\r\n\r\n{CANARY:<40}".encode(), match="POST /v1/notes:batch"
    )
    receiver.swallow_replies(1, match="POST /v1/operations:status", then="reset")
    sender.enqueue(write("a", text=CANARY), write("secret", folder=CANARY))
    sender.wait_until("saved", "a")
    sender.wait_until("refused", "secret")

    sender.change("alter table oncebox.operation add constraint never check (final is null) not valid")
    sender.enqueue(write("failing", text=CANARY))
    worker.wait_for_log('"delivery_failed"')
    sender.change("alter table oncebox.operation drop constraint never")
    sender.change("update oncebox.outbox_entry set lease_until = now() - interval '1 s'")
    sender.wait_until("saved", "failing")

    parties.terminate_all([worker, relay])
    secrets = (CANARY, "Finding", token)
    for process in (worker, relay):
        for line in log_lines(process):
            assert {"event", "level", "ts"} <= set(line)
        for secret in secrets:
            assert secret not in process.log_text()
    assert {"worker_started", "call_finished", "delivery_failed", "lease_lapsed", "worker_drained"} <= set(
        events(worker)
    )
    assert {"relay_started", "chunk_published", "relay_stopped"} <= set(events(relay))
    assert service.notes() == 2
