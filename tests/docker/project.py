"""docker-compose.yml as a person runs it: a project of its own name, fresh secrets, free ports; gone with its volumes."""

import json
import secrets
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.acceptance.ledger import NotesLedger, SenderLedger
from tests.docker.engine import ROOT, docker
from tests.support.polling import eventually

HEALTH = ("python", "-I", "-S", "/opt/oncebox/health.py")
DATABASES = {"oncebox": "ONCEBOX_DATABASE_PASSWORD", "notes": "ONCEBOX_NOTES_DATABASE_PASSWORD"}


@dataclass(frozen=True, slots=True)
class Container:
    """A line of `docker compose ps`."""

    service: str
    state: str
    health: str
    exit_code: int


class Project:
    """``with Project(image, folder) as project``: nothing runs yet; `up` starts it."""

    def __init__(self, image: str, folder: Path) -> None:
        self.name = f"oncebox-test-{secrets.token_hex(4)}"
        self._image = image
        self._env_file = folder / "env"

    def __enter__(self) -> Self:
        subprocess.run(
            ["sh", str(ROOT / "deploy/containers/new_env.sh"), str(self._env_file)],
            check=True,
            capture_output=True,
        )
        lines = self._env_file.read_text(encoding="utf-8").splitlines()
        self.secrets = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def compose(self, *arguments: str, timeout: float = 180, check: bool = True):
        """Run `docker compose …` on this project."""
        return docker(
            "compose",
            "--project-name",
            self.name,
            "--env-file",
            str(self._env_file),
            *arguments,
            env={
                "ONCEBOX_IMAGE": self._image,
                "ONCEBOX_HOST_POSTGRES_PORT": "0",
                "ONCEBOX_HOST_NOTES_PORT": "0",
            },
            timeout=timeout,
            check=check,
        )

    def up(self, **scale: int) -> None:
        """Start what does not run, with that many containers of a service, and wait until all are healthy."""
        scaled = [part for name, count in scale.items() for part in ("--scale", f"{name}={count}")]
        done = self.compose("up", "--detach", *scaled, check=False)
        assert done.returncode == 0, f"{done.stderr}\n{self.logs()}"
        eventually(self._is_whole, timeout=90, interval=0.5, what=lambda: f"all healthy\n{self.logs()}")

    def down(self) -> None:
        self.compose("down", "--volumes", "--remove-orphans")

    def left(self) -> list[str]:
        """What of this project the engine still holds."""
        label = f"label=com.docker.compose.project={self.name}"
        asked = (("ps", "--all"), ("volume", "ls"), ("network", "ls"))
        return [
            line for what in asked for line in docker(*what, "--quiet", "--filter", label).stdout.splitlines()
        ]

    def containers(self) -> list[Container]:
        lines = self.compose("ps", "--all", "--format", "json").stdout.splitlines()
        return [
            Container(row["Service"], row["State"], row["Health"], row["ExitCode"])
            for row in map(json.loads, lines)
        ]

    def check_health(self, service: str) -> tuple[bool, str]:
        """What the image's health check says in a container of the service now."""
        done = self.compose("exec", "--no-TTY", service, *HEALTH, check=False)
        return done.returncode == 0, done.stdout.strip()

    def oncebox(self, *arguments: str) -> list[dict[str, Any]]:
        """Run the command in a container of its own, as an operator does; the objects that it prints."""
        done = self.compose("run", "--rm", "--no-TTY", "oncebox", *arguments, "--json")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def logs(self, services: Sequence[str] = (), tail: int = 30) -> str:
        return self.compose("logs", "--no-color", "--tail", str(tail), *services).stdout

    def url(self, database: str) -> str:
        """A database of this project, from this machine."""
        place = self.compose("port", "postgres", "5432").stdout.strip()
        return f"postgresql://{database}:{self.secrets[DATABASES[database]]}@{place}/{database}"

    def sender(self) -> SenderLedger:
        return SenderLedger(self.url("oncebox"))

    def notes(self) -> NotesLedger:
        return NotesLedger(self.url("notes"))

    def _is_whole(self) -> bool:
        found = self.containers()
        assert all(one.exit_code == 0 for one in found if one.state == "exited"), found
        return all(one.health == "healthy" for one in found if one.service != "migrate")
