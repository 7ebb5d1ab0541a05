"""What the package promises: its names, its values, and what importing it brings along."""

import json
import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields

import pytest

import oncebox_outbox
from oncebox_outbox import Intent, Outbox, Write
from oncebox_outbox.aio import AsyncOutbox


def test_the_exported_names_are_these() -> None:
    assert sorted(oncebox_outbox.__all__) == [
        "ArgumentConflict",
        "Enqueued",
        "Fault",
        "Intent",
        "InvalidOperation",
        "Kind",
        "OperationNotFound",
        "OperationStatus",
        "Outbox",
        "OutboxError",
        "Receipt",
        "RetryTransaction",
        "SchemaMissing",
        "State",
        "UnknownDestination",
        "Write",
    ]
    assert all(hasattr(oncebox_outbox, name) for name in oncebox_outbox.__all__)


def test_the_asynchronous_outbox_has_the_same_names() -> None:
    def names(outbox: type) -> set[str]:
        return {name for name in vars(outbox) if not name.startswith("_")}

    assert names(AsyncOutbox) == names(Outbox)
    assert [field.name for field in fields(AsyncOutbox)] == [field.name for field in fields(Outbox)]


@pytest.mark.parametrize("kind", [Outbox, AsyncOutbox])
def test_an_outbox_is_a_frozen_hashable_value(kind: type[Outbox | AsyncOutbox]) -> None:
    one, same, other = kind("demo", "researcher"), kind("demo", "researcher", "notes"), kind("demo", "writer")
    assert one == same != other
    assert len({one, same, other}) == 2
    with pytest.raises(FrozenInstanceError):
        one.tenant = "another"  # pyright: ignore[reportAttributeAccessIssue] (that is what is tested)


def test_a_write_and_an_intent_cannot_be_changed() -> None:
    intent = Intent("run", "step", "why")
    with pytest.raises(FrozenInstanceError):
        intent.run = "another"  # pyright: ignore[reportAttributeAccessIssue] (that is what is tested)
    with pytest.raises(FrozenInstanceError):
        Write(intent, {}).operation_id = "x"  # pyright: ignore[reportAttributeAccessIssue] (that is what is tested)


READS_NOTHING = """
import json, os, sys
read = []
class Watched(dict):
    def __getitem__(self, key):
        read.append(key)
        return super().__getitem__(key)
    def get(self, key, default=None):
        read.append(key)
        return super().get(key, default)
import oncebox_outbox as it
os.environ = Watched(os.environ)
outbox = it.Outbox("demo", "researcher")
hash(outbox)
it.Write(it.Intent("run", "step", "why"), {"folder": "f", "title": "t", "text": "t"}).intent.faults()
heavy = {"celery", "kombu", "httpx2", "fastapi", "alembic", "pytest", "socket_events"}
print(json.dumps([outbox.tenant, read, sorted(heavy & set(sys.modules))]))
"""


def test_the_core_reads_no_environment_and_imports_no_extra() -> None:
    """ONCEBOX_ variables are for entry points only."""
    environment = {**os.environ, "ONCEBOX_TENANT": "from-the-environment", "ONCEBOX_DATABASE_URL": "nonsense"}
    done = subprocess.run(
        [sys.executable, "-c", READS_NOTHING], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == ["demo", [], []]
