"""A database that may lose what it confirmed: neither a worker nor the note service starts on it."""

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from oncebox_operate import migrate
from oncebox_operate.embedded import postgres
from oncebox_operate.embedded.postgres import EmbeddedPostgres
from oncebox_outbox.engine import durability_faults, worker_engine
from oncebox_worker.safe_settings import UnsafeSettings, check_database
from oncebox_worker.settings import RelaySettings


@pytest.fixture
def forgetful(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[EmbeddedPostgres]:
    """A server with the two settings off that no session can set."""
    monkeypatch.setitem(postgres.DURABLE, "fsync", "off")
    monkeypatch.setitem(postgres.DURABLE, "full_page_writes", "off")
    with EmbeddedPostgres(tmp_path / "data") as server:
        yield server


def test_a_worker_and_a_relay_name_what_is_off_and_do_not_start(forgetful: EmbeddedPostgres) -> None:
    url = forgetful.ensure_database("oncebox")
    migrate.up(url)

    with pytest.raises(UnsafeSettings) as refused:
        check_database(RelaySettings(database_url=url, broker_url="amqp://localhost"))

    assert [fault.split()[0] for fault in refused.value.faults] == ["fsync", "full_page_writes"]
    assert all("ALTER SYSTEM SET" in fault for fault in refused.value.faults)


def test_the_note_service_names_what_is_off_and_does_not_start(forgetful: EmbeddedPostgres) -> None:
    url = forgetful.ensure_database("notes")
    environment = {**os.environ, "ONCEBOX_NOTES_DATABASE_URL": url, "ONCEBOX_NOTES_PORT": "0"}
    command = [sys.executable, "-m", "oncebox_notes"]
    subprocess.run([*command, "migrate", "up"], env=environment, check=True, capture_output=True)

    serve = subprocess.run(
        [*command, "serve"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )

    assert serve.returncode == 1
    assert "fsync, full_page_writes is off" in serve.stderr


def test_a_commit_is_synchronous_whatever_the_database_prefers(sender_database: str) -> None:
    with psycopg.connect(sender_database, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("alter database {} set synchronous_commit = off").format(name))
    engine = worker_engine(sender_database, pool_size=1, application="test")
    try:
        assert durability_faults(engine) == []
    finally:
        engine.dispose()
