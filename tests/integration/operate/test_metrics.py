"""Metrics are read from PostgreSQL at each scrape: always there, and never a stale number."""

import urllib.error
import urllib.request
from collections.abc import Generator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from oncebox_models.outcomes import Outcome
from oncebox_operate import failures, metrics, version
from oncebox_operate.metrics import MetricsServer
from tests.integration.operate.conftest import ONCEBOX, Oncebox
from tests.integration.outbox.scenes import Sender, write
from tests.support.processes import Processes

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def server(sender: Sender) -> Generator[MetricsServer]:
    running = metrics.serve(sender.url, "127.0.0.1", 0)
    yield running
    running.close()


def scrape(server: MetricsServer) -> Samples:
    with urllib.request.urlopen(server.url, timeout=10) as reply:
        text = reply.read().decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def entries(samples: Samples, state: str) -> float:
    return samples["outbox_entries", frozenset({("destination", "notes"), ("state", state)})]


def oldest(samples: Samples) -> float:
    return samples["outbox_oldest_entry_age_seconds", frozenset({("destination", "notes")})]


def scale_target(samples: Samples) -> float:
    return samples["outbox_scale_target", frozenset()]


def test_with_nothing_open_every_metric_is_there_with_zero(server: MetricsServer) -> None:
    """F45: a number that is missing stops an autoscaler from starting the first worker."""
    samples = scrape(server)
    assert {entries(samples, str(state)) for state in metrics.OPEN_STATES} == {0}
    assert (oldest(samples), scale_target(samples)) == (0, 0)
    assert samples["outbox_build_info", frozenset({("version", version.ONCEBOX)})] == 1


def test_what_is_leased_and_what_is_in_backoff_counts(server: MetricsServer, sender: Sender) -> None:
    """F6, F45: nothing that is not settled is left out, whatever it waits for, with no worker alive."""
    ids = [sender.enqueue_one(f"note-{number}") for number in range(3)]
    sender.claim_one(ids[0])
    sender.answer(sender.claim_one(ids[1]), Outcome.UNKNOWN, "timeout")
    sender.change(
        "update oncebox.outbox_entry set ready_at = now() + interval '1 h' where id = any(:ids)", [ids[1]]
    )
    sender.change(
        "update oncebox.outbox_entry set enqueued_at = now() - interval '1 h' where id = any(:ids)", [ids[1]]
    )
    samples = scrape(server)
    assert [entries(samples, state) for state in ("pending", "sending", "unknown")] == [1, 1, 1]
    assert 3600 <= oldest(samples) < 3700
    assert scale_target(samples) == 2


def test_a_scrape_while_the_database_is_gone_fails_and_the_next_one_is_exact_again(
    server: MetricsServer, sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    """F5: a gauge must not go on showing the last number that was read."""
    scrape(server)
    sender.enqueue_one()
    sender.change("alter schema oncebox rename to away", [])
    with pytest.raises(urllib.error.HTTPError) as failed:
        scrape(server)
    with failed.value as reply:
        body = reply.read().decode()
    assert (failed.value.code, "there are no numbers" in body, "outbox_entries" in body) == (500, True, False)
    assert [record.getMessage() for record in caplog.records] == ["metrics_failed"]
    sender.change("alter schema away rename to oncebox", [])
    assert entries(scrape(server), "pending") == 1


def test_a_scrape_survives_that_its_connections_were_cut(server: MetricsServer, sender: Sender) -> None:
    scrape(server)
    sender.change(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and application_name = 'oncebox metrics'",
        [],
    )
    assert scale_target(scrape(server)) == 0


def test_only_the_metrics_path_is_answered(server: MetricsServer) -> None:
    with pytest.raises(urllib.error.HTTPError) as failed:
        urllib.request.urlopen(server.url.replace("/metrics", "/other"), timeout=10)
    failed.value.close()
    assert failed.value.code == 404


def test_a_taken_port_is_said_with_what_to_do(server: MetricsServer, sender: Sender) -> None:
    port = int(server.url.split(":")[2].split("/")[0])
    with pytest.raises(failures.Failure, match=f"127.0.0.1:{port}") as refused:
        metrics.serve(sender.url, "127.0.0.1", port)
    assert "--metrics-port" in (refused.value.hint or "")


def test_the_relay_serves_them_with_the_broker_down(
    processes: Processes, oncebox: Oncebox, sender: Sender
) -> None:
    """F6: fifty that wait for a broker that is down are seen, with their age, while the relay backs off."""
    sender.enqueue(*(write(f"note-{number}") for number in range(50)))
    relay = processes.start(
        "relay",
        [ONCEBOX, "relay", "--metrics-port", "0"],
        env={"ONCEBOX_BROKER_URL": "amqp://guest:guest@127.0.0.1:1"},
    )
    url = relay.wait_for_log(r'"event": "metrics_served".*"url": "([^"]+)"')[1]
    relay.wait_for_log('"broker_unreachable"', count=2)
    with urllib.request.urlopen(url, timeout=10) as reply:
        told = reply.read().decode()
    assert 'outbox_entries{destination="notes",state="pending"} 50.0' in told
    age = next(line for line in told.splitlines() if line.startswith("outbox_oldest_entry_age_seconds{"))
    assert float(age.rpartition(" ")[2]) > 0
    assert relay.terminate() == 0
