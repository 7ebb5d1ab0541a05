"""The command line, on real databases and a real note service."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from oncebox_operate import running
from tests.integration.outbox import scenes
from tests.integration.outbox.scenes import Sender

ONCEBOX = Path(sys.executable).with_name("oncebox")


@dataclass(frozen=True, slots=True)
class Ran:
    """One command that ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        (line,) = self.lines
        return line

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> dict[str, Any]:
        return self.json["error"]


Oncebox = Callable[..., Ran]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str | None], None]:
    """Sets a variable for the commands of this test; none of the surroundings' ONCEBOX_ variables is left."""
    for name in [name for name in os.environ if name.startswith("ONCEBOX_")]:
        monkeypatch.delenv(name)

    def change(name: str, value: str | None) -> None:
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)

    return change


@pytest.fixture
def oncebox(environment: object, capsys: pytest.CaptureFixture[str]) -> Oncebox:
    """Runs `oncebox …` in this process, through its real entry."""

    def run(*tokens: object) -> Ran:
        capsys.readouterr()
        code = running.run([str(token) for token in tokens])
        out, err = capsys.readouterr()
        return Ran(int(code), out, err)

    return run


@pytest.fixture
def oncebox_process(environment: object) -> Oncebox:
    """Runs the installed command `oncebox …` as a process."""

    def run(*tokens: object, stdin: bytes = b"", **variables: str) -> Ran:
        done = subprocess.run(
            [str(ONCEBOX), *map(str, tokens)],
            input=stdin,
            env={**os.environ, **variables},
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def sender(sender_database: str, environment: Callable[[str, str | None], None]) -> Generator[Sender]:
    """A sender's database with an agent and a worker on it, which the commands use, too."""
    environment("ONCEBOX_DATABASE_URL", sender_database)
    with scenes.sender(sender_database) as parties:
        yield parties
