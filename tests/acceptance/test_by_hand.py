"""What a person does in four terminals, with the `oncebox` command and nothing else."""

import json
import subprocess
from pathlib import Path

from tests.acceptance.town import ONCEBOX, RELAY_STARTED, WORKER_STARTED
from tests.support.databases import DatabaseServer
from tests.support.processes import Processes, run


def test_four_terminals(
    database_server: DatabaseServer,
    postgres_url: str,
    broker_url: str,
    queue_prefix: str,
    processes: Processes,
    tmp_path: Path,
) -> None:
    """Migrate, note service, relay, worker; a save is committed, waited for and found again; another text is a
    conflict; a folder without a grant ends with the folders that are permitted."""
    with database_server.empty() as sender, database_server.empty() as notes:
        person = Person(
            {
                "ONCEBOX_DATABASE_URL": sender,
                "ONCEBOX_NOTES_DATABASE_URL": notes,
                "ONCEBOX_BROKER_URL": broker_url,
                "ONCEBOX_QUEUE_PREFIX": queue_prefix,
            }
        )
        person.runs("migrate", "up")
        person.runs("grant", "add", "--tenant", "demo", "--principal", "researcher", "--folder", "drafts")
        token = person.runs(
            "token", "create", "--tenant", "demo", "--principal", "worker", "--delegate"
        ).stdout
        person.environment["ONCEBOX_TOKEN"] = token.strip()

        serving = processes.start(
            "notes", [*ONCEBOX, "notes", "serve", "--port", "0"], env=person.environment
        )
        ready = serving.wait_for_log(r'\{"event": ?"ready".*\}', timeout=40)
        person.environment["ONCEBOX_NOTES_URL"] = json.loads(ready[0])["url"]
        relay = processes.start("relay", [*ONCEBOX, "relay"], env=person.environment)
        worker = processes.start("worker", [*ONCEBOX, "worker"], env=person.environment)
        relay.wait_for_log(RELAY_STARTED, timeout=40)
        worker.wait_for_log(WORKER_STARTED, timeout=40)

        person.saves("note-7")
        waited = person.runs("wait", "note-7", "--timeout", "30s")
        held = json.loads(person.runs("status", "note-7", "--json").stdout)["receipt"]
        assert held["note"]["location"] in waited.stdout

        again = json.loads(person.saves("note-7", "--json").stdout)
        assert again["created"] is False
        assert again["say"].startswith("Exists already")
        assert again["receipt"] == held
        person.saves("note-7", text="Another text.", ends_with=4)

        person.saves("secret-7", folder="secrets")
        refused = person.runs("wait", "secret-7", "--timeout", "30s", ends_with=6)
        assert "drafts" in refused.stdout
        assert "folder_not_writable" in refused.stdout

        verified = person.runs("verify", "--deep", "--json")
        assert json.loads(verified.stdout)["ok"] is True
        for process in (worker, relay, serving):
            assert process.terminate() == 0


class Person:
    """Types commands, and looks at how they end."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def runs(self, *arguments: str, ends_with: int = 0) -> "subprocess.CompletedProcess[str]":
        done = run([*ONCEBOX, *arguments], env=self.environment)
        said = f"oncebox {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}"
        assert done.returncode == ends_with, said
        assert "Traceback" not in done.stderr, said
        return done

    def saves(
        self,
        operation_id: str,
        *options: str,
        folder: str = "drafts",
        text: str = "Reef B recovers faster.",
        ends_with: int = 0,
    ) -> "subprocess.CompletedProcess[str]":
        wanted = ("--operation-id", operation_id, "--folder", folder, "--title", "Finding 7", "--text", text)
        return self.runs("enqueue", *wanted, *options, ends_with=ends_with)
