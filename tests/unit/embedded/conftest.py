"""Owners of embedded servers, as processes that can be killed, and data folders with awkward names."""

import json
import os
import shutil
import site
import sys
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support.databases import ROOT
from tests.support.processes import Processes, RunningProcess

PROGRAM = Path(__file__).with_name("server_owner.py")
StartOwner = Callable[..., tuple[RunningProcess, dict[str, Any]]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder that does not exist yet, with a space and a letter that is not ASCII in its name."""
    return tmp_path / "my dätä" / "server"


@pytest.fixture
def shared_folder() -> Generator[Path, None, None]:
    """A folder of ours that every user may enter; pytest's are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="oncebox tëst "))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def start_owner(processes: Processes) -> StartOwner:
    """Start the program ``server_owner.py``; the process and what it printed when ready."""

    def start(
        kind: str, data: Path, then: str = "wait", *, program: tuple[str, ...] = (sys.executable,)
    ) -> tuple[RunningProcess, dict[str, Any]]:
        folders = [str(ROOT / "operate"), str(ROOT / "models"), *site.getsitepackages()]
        owner = processes.start(
            "owner",
            [*program, PROGRAM, kind, data, then],
            env={"PYTHONPATH": os.pathsep.join(folders)},
            cwd=Path("/"),
        )
        line = owner.wait_for_log(r"^\{.*\}$", timeout=60)
        return owner, json.loads(line.group())

    return start


@pytest.fixture
def somebody() -> Generator[tuple[tuple[str, ...], Path], None, None]:
    """How to run Python as an ordinary user, and a folder that belongs to that user.

    For root that is ``nobody`` with a Python that others may execute; anybody else is one already.
    """
    folder = Path(tempfile.mkdtemp(prefix="oncebox tëst "))
    program: tuple[str, ...] = (sys.executable,)
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
        user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
        program = (*user, _python_for_everybody())
    yield program, folder
    shutil.rmtree(folder)


def _python_for_everybody() -> str:
    """Root's own Python often lives in root's home; the system's has the same version then, or it is no use."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (
        Path(sys.executable).resolve(),
        Path("/usr/bin", version),
        Path("/usr/local/bin", version),
    ):
        if python.exists() and all(parent.stat().st_mode & 0o001 for parent in python.parents):
            return str(python)
    pytest.skip(f"no {version} that an ordinary user may execute")
