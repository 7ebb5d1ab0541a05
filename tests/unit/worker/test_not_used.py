"""Parts of Celery that have hurt others, and that we do not use: what is not there cannot fail.

Cases `C…` of `docs/cases.md`; where the part cannot be left out, its setting is checked instead.
"""

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import requires
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery
from celery.worker import consumer
from celery.worker.consumer import Gossip, Heart, Mingle

import oncebox_worker
from oncebox_worker import process
from oncebox_worker.consuming import Consumer
from oncebox_worker.messages import DELIVER_TASK, Chunk
from oncebox_worker.settings import WorkerSettings
from oncebox_worker.task_messages import task_message

ROOT = Path(__file__).parents[3]
PUBLISHING = {"apply_async", "delay", "send_task", "retry", "signature", "subtask", "chain", "group", "chord"}


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Celery:
    """The workers' app with the settings of a worker."""
    monkeypatch.setattr(process, "_settings", [])
    process.use(
        WorkerSettings.model_construct(
            database_url="postgresql://x/y", broker_url="amqp://x", queue_prefix="oncebox", concurrency=8
        )
    )
    from oncebox_worker.app import app

    return app


@pytest.fixture
def message() -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Headers, properties and body of what the relay publishes."""
    built = task_message(Chunk(destination="notes", ids=(uuid4(),), dispatched_at=datetime.now(UTC)))
    return built.headers, built.properties, json.loads(built.body)


def test_no_message_waits_for_a_time(message: tuple[dict[str, Any], dict[str, Any], Any]) -> None:
    """F14, C8, C9, C10, C18: no ETA, no countdown, no expiry: a delay is a row's `ready_at`, so no worker holds a message
    beyond the broker's patience, and no copy of a waiting one goes round."""
    headers, properties, _ = message
    assert (headers["eta"], headers["expires"], headers["timelimit"]) == (None, None, [None, None])
    assert "expiration" not in properties


def test_no_message_has_a_successor(message: tuple[dict[str, Any], dict[str, Any], Any]) -> None:
    """C2: no chain, group, chord or callback: what follows an answer is decided when it is written down."""
    headers, _, (arguments, named, embedded) = message
    assert (len(arguments), named) == (1, {})
    assert set(embedded) == {"callbacks", "errbacks", "chain", "chord"}
    assert not any(embedded.values())
    assert (headers["group"], headers["parent_id"], headers["retries"]) == (None, None, 0)


def test_nothing_in_a_worker_publishes_or_retries_by_celery() -> None:
    """F20, C18, C19, C20: a retry that cannot be published, or comes back under another key, is none of ours."""
    used = {
        f"{path.name}:{node.lineno} {node.func.attr}"
        for path, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in PUBLISHING
    }
    assert used == set()


def test_there_is_one_task_and_nobody_calls_it_by_the_clock(app: Celery) -> None:
    """F58: no rescuer among the jobs that it would have to rescue, and no scheduler whose end nobody sees; C19: the task
    retries by no rule of Celery's."""
    ours = {name for name in app.tasks if not name.startswith("celery.")}
    assert ours == {DELIVER_TASK}
    assert app.conf.beat_schedule == {}
    task = app.tasks[DELIVER_TASK]
    assert not getattr(task, "autoretry_for", ())
    assert (task.rate_limit, task.time_limit, task.soft_time_limit) == (None, None, None)


def test_no_part_of_a_worker_is_replaced_or_added_while_it_runs(app: Celery) -> None:
    """C15, C28, C41, C43: children are neither recycled by count nor by size, and no autoscaler changes their number."""
    assert (app.conf.worker_max_tasks_per_child, app.conf.worker_max_memory_per_child) == (None, None)
    source = (Path(oncebox_worker.__file__).parent / "main.py").read_text(encoding="utf-8")
    assert "autoscale" not in source


def test_workers_neither_gossip_nor_mingle_nor_tell_that_they_live(
    app: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C25, C45: no queue but ours, no clocks compared; by whichever command a worker is started."""
    # A release of Celery that passes the options another way would bring all of these back unseen.
    assert "worker_options" in signature(consumer.Consumer).parameters
    given: dict[str, Any] = {}
    monkeypatch.setattr(consumer.Consumer, "__init__", lambda _, **options: given.update(options))
    Consumer(hostname="w@x", worker_options={"without_gossip": False, "task_events": False})
    options, parent = given["worker_options"], SimpleNamespace(app=app, hostname="w@x", timer=None, pid=1)
    parts = (Gossip, Heart, Mingle)
    assert [part(parent, **options).include_if(parent) for part in parts] == [False, False, False]
    assert app.conf.worker_enable_remote_control is False


def test_a_message_lost_with_its_channel_costs_no_prefetch(app: Celery) -> None:
    """C17, C27: Celery's reduction after a reconnection is off: it was seen to last for ever; and limits are those of a
    consumer, never of a whole channel, which a later broker refuses."""
    assert app.conf.worker_enable_prefetch_count_reduction is False
    assert app.conf.worker_detect_quorum_queues is True


def test_no_pool_library_no_batching_no_instrumentation() -> None:
    """C36, C48, C50: no greenlets, no batches kept by a timer, no spans that a recycled child would lose."""
    unwanted = ("gevent", "eventlet", "celery-batches", "opentelemetry", "flower")
    named = [line for line in requires("oncebox") or () if line.startswith(unwanted)]
    assert named == []
    code = (
        "import sys, oncebox_worker.app;"
        f" print([name for name in sys.modules if name.startswith({tuple(n.replace('-', '_') for n in unwanted)})])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PATH": ""}
    )
    assert done.stdout.strip() == "[]"


def test_these_tests_load_no_plugin_that_needs_an_engine_or_starts_all_over_for_each_of_them() -> None:
    """C49: servers are started once a session; pytest-celery's fixtures are loaded for containers alone."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"][
        "addopts"
    ]
    assert "no:celery" in options
    assert "no:docker_tools" in options


def _modules() -> Iterator[tuple[Path, ast.Module]]:
    folder = Path(oncebox_worker.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))
