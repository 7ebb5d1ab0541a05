"""A whole installation for the canaries: its own PostgreSQL as `oncebox up` starts it, RabbitMQ, every role a process.

All of it is set up by the command, as an operator would; everything that is printed is kept to be looked through.
"""

import itertools
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psycopg
from kombu import Connection as Broker

from oncebox_operate.embedded import EmbeddedPostgres
from tests.acceptance.town import ONCEBOX, Places, Town
from tests.proof.security.canary import Canary
from tests.support import processes
from tests.support.processes import Processes, RunningProcess

AGENT = "tests.proof.security.agent"
SEND = "POST /v1/notes:batch"


class Aviary(Town):
    """A town at log level debug, whose worker's token was made by `oncebox token create`."""

    def __init__(
        self, server: EmbeddedPostgres, broker_url: str, queue_prefix: str, folder: Path, started: Processes
    ) -> None:
        self.server = server
        places = Places(
            server.ensure_database("oncebox"),
            server.ensure_database("notes"),
            broker_url,
            queue_prefix,
            folder,
        )
        self.token = "not made yet"
        self.outputs: dict[str, str] = {}
        self.evidence = ""
        self._numbers = itertools.count(1)
        super().__init__(places, started, log_level="debug", metrics_port=0)

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"ONCEBOX_NOTES_LOG_LEVEL": "debug"}

    def type(
        self, *arguments: str, expected: Sequence[int] = (0,), stdin: str = "", **environment: str
    ) -> str:
        """Run the command as a person would, and return its stdout. Two outputs are not kept with the others: `token
        create` shows a secret, once, to the one who asked; `show` has the receiver's words."""
        done = processes.run([*ONCEBOX, *arguments], env=self.environment | environment, stdin=stdin)
        assert done.returncode in expected, (arguments, done.returncode, done.stderr[-2000:])
        apart = arguments[:2] == ("token", "create") or arguments[0] == "show"
        self.outputs[f"oncebox {' '.join(arguments[:3])} #{next(self._numbers)}"] = (
            done.stderr if apart else done.stdout + done.stderr
        )
        return done.stdout

    def agent(self, operation_id: str, canary: Canary, **more: object) -> "subprocess.CompletedProcess[str]":
        """Run the agent's program; its output is kept as its log."""
        asked = {"tenant": "demo", "principal": "researcher", "operation_id": operation_id, **more}
        done = processes.run(
            [ONCEBOX[0], "-m", AGENT],
            env={"ONCEBOX_DATABASE_URL": self.places.sender_database},
            cwd=Path(__file__).parents[3],
            stdin=json.dumps(asked | {"title": canary.title, "text": canary.text}),
        )
        self.outputs[f"agent, {operation_id} #{next(self._numbers)}"] = done.stdout + done.stderr
        return done

    def in_environment_of(self, process: RunningProcess) -> dict[str, str]:
        """What the process was given, by the kernel's word."""
        raw = Path(f"/proc/{process.pid}/environ").read_bytes()
        return dict(entry.decode().split("=", 1) for entry in raw.split(b"\0") if b"=" in entry)

    def at_broker(self) -> list[str]:
        """Every message that waits in our queues, with headers and properties; they stay there."""
        seen = list[str]()
        with Broker(self.places.broker_url) as broker, broker.channel() as channel:
            for queue in ("deliver", "dead"):
                name = f"{self.places.queue_prefix}.{queue}"
                while (message := channel.basic_get(name)) is not None:  # pyright: ignore[reportAttributeAccessIssue] of py-amqp
                    seen.append(f"{message.headers} {message.properties} {message.body}")
        # The channel ends without an acknowledgement: all go back.
        return seen

    def broken(self, url: str, statement: str) -> None:
        """Change a database as no operator would."""
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement.encode())
