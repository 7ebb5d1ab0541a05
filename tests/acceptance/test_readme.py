"""What the README shows works as it is shown, in a running installation."""

import os
import re
import sys
from pathlib import Path

from tests.acceptance.town import Town
from tests.support import processes

README = (Path(__file__).parents[2] / "README.md").read_text()
PYTHON, SHELL = (
    [match[1] for match in re.finditer(rf"```{kind}\n(.*?)```", README, re.DOTALL)]
    for kind in ("python", "sh")
)


def test_the_python_example_saves_a_note(town: Town) -> None:
    """The first screen's program, with this installation's database and a name of its own."""
    address = town.places.sender_database.replace("postgresql://", "postgresql+psycopg://")
    (example,) = PYTHON
    program = example.replace("postgresql+psycopg://localhost/oncebox", address).replace(
        "note-7", "readme-python"
    )

    done = processes.run([sys.executable, "-c", program])

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Saved: readme-python is note ")
    assert "in folder 'drafts' at /v1/notes/" in done.stdout


def test_the_fourth_terminal_saves_a_note_and_shows_it(town: Town) -> None:
    """The block of commands that a reader types last."""
    typed = SHELL[-1].replace("note-7", "readme-shell")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    done = processes.run(["bash", "-e", "-c", typed], env=town.environment | {"PATH": path})

    assert done.returncode == 0, done.stderr
    assert "Saved: readme-shell is note " in done.stdout
    assert "settled" in done.stdout


def test_every_command_of_the_readme_is_one(town: Town) -> None:
    """A command that was renamed is noticed here."""
    named = set(
        re.findall(r"^oncebox ((?:[a-z]+)(?: (?:up|create|add|serve))?)", "\n".join(SHELL), re.MULTILINE)
    )

    assert len(named) >= 4
    for command in named:
        assert town.oncebox(*command.split(), "--help").returncode == 0, command
