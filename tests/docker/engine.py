"""The Docker engine of this machine, asked by its command line, and the project's image, built once a run."""

import functools
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMAGE = "oncebox:test"
BUILD_NETWORK = "ONCEBOX_BUILD_NETWORK"


def docker(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    timeout: float = 120,
    check: bool = True,
) -> "subprocess.CompletedProcess[str]":
    """Run `docker …`; fails with what it said unless it exits with 0 or `check` is off."""
    done = subprocess.run(
        ["docker", *arguments],
        cwd=cwd,
        env={**surroundings(), **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if check:
        assert done.returncode == 0, (
            f"docker {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done


def surroundings() -> dict[str, str]:
    """This process's environment without settings of Oncebox: a shell's would win over a test's .env."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ONCEBOX_")}


def require() -> None:
    """Skip the test where no engine with the compose plugin answers (in CI a skip is a failure)."""
    for question in (("info",), ("compose", "version")):
        try:
            done = docker(*question, timeout=20, check=False)
        except (FileNotFoundError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"no Docker engine: {error}")
        if done.returncode:
            pytest.skip(f"docker {' '.join(question)}: {done.stderr.strip().splitlines()[-1]}")


@functools.cache
def image() -> str:
    """The image of the working tree as docker-compose.yml builds it."""
    require()
    secrets = (
        "POSTGRES_PASSWORD",
        "DATABASE_PASSWORD",
        "NOTES_DATABASE_PASSWORD",
        "BROKER_PASSWORD",
        "TOKEN",
    )
    given = {f"ONCEBOX_{name}": "not-used-by-a-build" for name in secrets}
    network = os.environ.get(BUILD_NETWORK, "default")
    docker(
        "compose",
        "build",
        "migrate",
        env={**given, "ONCEBOX_IMAGE": IMAGE, BUILD_NETWORK: network},
        timeout=420,
    )
    return IMAGE
