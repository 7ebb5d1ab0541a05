"""Celery's settings of a worker: each line here is one that a default would break."""

import subprocess
import sys
from typing import Any

import pytest
from kombu import Queue
from pydantic import SecretStr

from oncebox_worker.celery_config import celery_config
from oncebox_worker.consuming import Consumer
from oncebox_worker.settings import WorkerSettings
from oncebox_worker.topology import Topology


def config(broker_url: str = "amqp://guest@127.0.0.1//") -> dict[str, Any]:
    return celery_config(
        WorkerSettings(
            database_url="postgresql://x/y",
            broker_url=broker_url,
            queue_prefix="try",
            notes_url="http://127.0.0.1:9",
            token=SecretStr("t"),
        )
    )


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        # Whatever ends a worker before its work is done brings the message back, or sets it aside (C39, surprise 5).
        ("task_acks_late", True),
        ("task_reject_on_worker_lost", True),
        ("task_acks_on_failure", False),
        ("task_acks_on_timeout", False),
        # A result backend would be one more thing that can be down; pickle would be code from the broker.
        ("task_ignore_result", True),
        ("result_backend", None),
        ("task_serializer", "json"),
        ("accept_content", ["json"]),
        # A misspelt queue fails.
        ("task_create_missing_queues", False),
        # An outage of any length ends no worker, nor does a channel that the broker closes (C21, C22, C23).
        ("broker_connection_retry_on_startup", True),
        ("broker_connection_max_retries", None),
        ("broker_channel_error_retry", True),
        ("broker_heartbeat", 30),
        # Its queue belongs to a node's name, which two plain workers of one machine share (surprise 8).
        ("worker_enable_remote_control", False),
        ("worker_prefetch_multiplier", 1),
        # For ever fewer messages after one lost connection (C17).
        ("worker_enable_prefetch_count_reduction", False),
        # ONCEBOX_CONCURRENCY counts for Celery's own command, too.
        ("worker_concurrency", 8),
        ("worker_cancel_long_running_tasks_on_connection_loss", True),
        ("worker_send_task_events", False),
        ("task_send_sent_event", False),
        ("worker_hijack_root_logger", False),
        ("worker_redirect_stdouts", False),
    ],
)
def test_a_setting_that_matters(setting: str, value: object) -> None:
    """CELERY.md, section 7."""
    assert config()[setting] == value


def test_a_worker_confirms_nothing_and_waits_for_nothing_without_end() -> None:
    """Surprise 2: with confirms its own heartbeat event would hang it on a frozen broker. Reads and writes are bounded."""
    options = config()["broker_transport_options"]
    assert "confirm_publish" not in options
    assert 0 < options["read_timeout"] <= 15
    assert 0 < options["write_timeout"] <= 15


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_a_redis_protocol_broker_brings_messages_back_soon(scheme: str) -> None:
    """Surprise 9: with the defaults a killed worker's message returns after minutes more than it has to (C13)."""
    options = config(f"{scheme}://127.0.0.1:6379")["broker_transport_options"]
    assert options["visibility_timeout"] == 900
    assert (options["unacked_restore_interval"], options["unacked_restore_throttle"]) == (5, 1)
    assert options["socket_timeout"] == 30


def test_the_one_queue_is_a_quorum_queue_on_a_direct_exchange() -> None:
    """Redelivery is counted and bounded, a full queue refuses, and what is set aside is kept."""
    (queue,) = config()["task_queues"]
    assert isinstance(queue, Queue)
    assert (queue.name, queue.exchange.type, queue.durable, queue.exchange.durable) == (
        "try.deliver",
        "direct",
        True,
        True,
    )
    assert queue.queue_arguments is not None
    assert queue.queue_arguments["x-dead-letter-exchange"] == Topology("try").dead.exchange.name
    assert Topology("try").dead.queue_arguments == {"x-queue-type": "quorum"}
    assert config()["task_default_queue"] == queue.name


def test_a_worker_adds_no_queues_for_delayed_delivery() -> None:
    """Delays live in SQL; Celery's own would be 28 quorum queues at every start."""
    steps = Consumer.Blueprint.default_steps
    assert not any("delayed" in step for step in steps)
    assert any(step.endswith(":Tasks") for step in steps)
    assert config()["worker_consumer"] == f"{Consumer.__module__}:{Consumer.__name__}"


def test_importing_the_app_needs_no_environment_and_connects_to_nothing() -> None:
    """Only an entry point reads the environment, when it runs."""
    code = "import oncebox_worker.app as module; assert module.app.main == 'oncebox'"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PATH": ""}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
