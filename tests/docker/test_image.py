"""The image: what is in it, who runs it, and what its health check looks at."""

import importlib.util
import json
from types import ModuleType

import pytest

from tests.docker.engine import ROOT, docker

pytestmark = pytest.mark.timeout(480)  # the first test waits for the build


def in_container(image: str, *command: str) -> str:
    return docker("run", "--rm", "--network=none", "--entrypoint", command[0], image, *command[1:]).stdout


@pytest.fixture(scope="module")
def health() -> ModuleType:
    """The health check as a module."""
    spec = importlib.util.spec_from_file_location("health", ROOT / "deploy/containers/health.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_runs_as_nobody_in_particular_and_cannot_change_itself(image: str) -> None:
    assert in_container(image, "id", "-u").strip() == "10001"
    writable = in_container(image, "find", "/opt", "/usr", "-xdev", "-writable", "-not", "-type", "l")
    assert writable == ""


def test_it_is_the_command_and_needs_no_setting_to_say_its_version(image: str) -> None:
    done = docker("run", "--rm", "--network=none", image, "version", "--json")
    assert json.loads(done.stdout)["version"]


def test_nothing_is_in_it_but_the_programs(image: str) -> None:
    alien = ("-name", ".env*", "-o", "-name", ".git", "-o", "-name", "conftest.py", "-o", "-name", "*.sh")
    assert in_container(image, "find", "/opt", "/home", "-xdev", "(", *alien, ")").strip() == ""
    kept = json.loads(docker("image", "inspect", image).stdout)[0]["Config"]
    assert not [line for line in kept["Env"] if line.startswith("ONCEBOX_")]
    assert kept["Healthcheck"]["Test"][0] == "CMD"


def test_what_is_installed_is_compiled(image: str) -> None:
    code = "import pathlib, oncebox_outbox as o; print(len(list(pathlib.Path(o.__file__).parent.rglob('*.pyc'))))"
    assert int(in_container(image, "python", "-c", code)) > 10


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("/sbin/docker-init -- oncebox worker", "worker"),
        ("/opt/oncebox/bin/python /opt/oncebox/bin/oncebox relay --metrics-port 9464", "relay"),
        ("/sbin/docker-init -- oncebox notes serve", "notes"),
        ("/opt/oncebox/bin/python -P -m oncebox_notes serve", "notes"),
        ("celery -A oncebox_worker.app worker -P threads", "worker"),
        ("/bin/sh -euc", ""),
    ],
)
def test_the_health_check_knows_the_role_by_the_command_line(
    health: ModuleType, command: str, role: str
) -> None:
    assert health.role_of(command.split(" ")) == role


def test_the_health_check_reads_addresses_as_the_kernel_writes_them(health: ModuleType) -> None:
    assert health._endpoint("0100007F:1628") == ("127.0.0.1", 5672)
    assert health._endpoint("0000000000000000FFFF00000100007F:0050") == ("::ffff:127.0.0.1", 80)


def test_a_worker_without_a_broker_is_not_healthy(health: ModuleType) -> None:
    faults = list(health.faults("worker", {"ONCEBOX_BROKER_URL": "amqp://guest@127.0.0.1:1//"}))
    assert faults == ["no connection to the broker at 127.0.0.1:1"]
