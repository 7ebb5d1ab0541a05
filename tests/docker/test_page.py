"""docs/how-to/containers.md, typed as it stands, in a copy of the working tree."""

import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from tests.docker import engine
from tests.docker.engine import ROOT

pytestmark = pytest.mark.timeout(480)

PAGE = ROOT / "docs/how-to/containers.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
BUILT_HERE = (".venv", ".git", "__pycache__", ".env")


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    tree = tmp_path / "a clone"
    shutil.copytree(ROOT, tree, symlinks=True, ignore=shutil.ignore_patterns(*BUILT_HERE))
    return tree


@pytest.fixture
def environment(copied: Path, image: str) -> Generator[Mapping[str, str]]:
    """A name, an image and ports of its own, as .env could set them; `oncebox` is the one that is tested."""
    name = f"oncebox-page-{secrets.token_hex(4)}"
    given = engine.surroundings() | {
        "COMPOSE_PROJECT_NAME": name,
        "ONCEBOX_IMAGE": f"oncebox:{name}",
        "ONCEBOX_HOST_NOTES_PORT": "0",
        "ONCEBOX_HOST_POSTGRES_PORT": "0",
        "ONCEBOX_BUILD_NETWORK": os.environ.get(engine.BUILD_NETWORK, "default"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    yield given
    if (copied / ".env").exists():
        engine.docker("compose", "down", "--volumes", env=given, cwd=copied)
    engine.docker("image", "rm", f"oncebox:{name}", check=False)


def test_what_the_page_says_works_from_the_first_line_to_the_last(
    copied: Path, environment: Mapping[str, str]
) -> None:
    script = "".join(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    done = subprocess.run(
        ["sh", "-ex"],
        input=script,
        cwd=copied,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=420,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    for said in ("Saved: note-7 is note", "All good: none lost, none twice", "may write into drafts"):
        assert said in done.stdout, done.stdout
    assert (copied / ".env").stat().st_mode & 0o077 == 0
