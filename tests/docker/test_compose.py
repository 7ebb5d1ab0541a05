"""The real docker-compose.yml, from a clean `up` to a `down` that leaves nothing. The tests build on each other."""

import json
import time
from contextlib import closing

import psycopg
import pytest

from tests.acceptance.ledger import SenderLedger
from tests.docker.agent import Agent
from tests.docker.project import Project
from tests.support.polling import eventually

pytestmark = pytest.mark.timeout(480)  # the first test waits for the image

OPERATIONS = 500


def test_500_operations_are_delivered_while_workers_come_and_go(project: Project) -> None:
    began = time.monotonic()
    project.up()
    print(f"healthy after {time.monotonic() - began:.1f} s")
    with closing(project.sender()) as sender, closing(project.notes()) as notes:
        count = load_while_scaling(project, sender)
        print(f"{count} operations saved after {time.monotonic() - began:.1f} s")
        assert sender.states() == {"saved": count}
        assert notes.count() == count
        assert sender.violations() == []
    (verified,) = project.oncebox("verify", "--deep")
    assert verified["ok"], verified
    counted = {name: verified[name] for name in ("operations", "saved", "notes", "read")}
    assert counted == dict.fromkeys(counted, count)


def load_while_scaling(project: Project, sender: SenderLedger) -> int:
    """Enqueue at a steady rate while one worker becomes four, and four become one; how many in all, none open."""

    def seen() -> int:
        return int(sender.value("SELECT count(DISTINCT worker) FROM oncebox.call WHERE kind = 'send'"))

    with Agent(project.url("oncebox"), rate=25) as agent:
        eventually(lambda: sender.states().get("saved", 0) > 50, timeout=30, what="the first are saved")
        assert seen() == 1
        project.up(worker=4, relay=2)
        eventually(lambda: seen() >= 4, timeout=30, what=lambda: f"{seen()} workers took part")
        committed = agent.committed
        # What three of them hold is finished or given back, not lost.
        project.up(worker=1, relay=1)
        assert agent.committed > committed
    agent.save_up_to(OPERATIONS)
    eventually(lambda: sender.live() == 0, timeout=60, what=lambda: f"{sender.states()}\n{project.logs()}")
    return agent.committed


def test_what_is_published_is_published_to_this_machine_only(project: Project) -> None:
    services = json.loads(project.compose("config", "--format", "json").stdout)["services"]
    published = {name: [p["host_ip"] for p in service.get("ports", [])] for name, service in services.items()}
    assert {name: hosts for name, hosts in published.items() if hosts} == {
        "postgres": ["127.0.0.1"],
        "notes": ["127.0.0.1"],
    }


def test_neither_party_can_connect_to_the_others_database(project: Project) -> None:
    for role, other in (("oncebox", "notes"), ("notes", "oncebox")):
        url = project.url(role).removesuffix(role) + other
        with pytest.raises(psycopg.OperationalError, match=f'permission denied for database "{other}"'):
            psycopg.connect(url)


def test_a_second_up_changes_nothing_and_a_grant_that_was_taken_back_stays_so(project: Project) -> None:
    whose = ("--tenant", "demo", "--principal", "researcher")
    project.oncebox("grant", "revoke", *whose, "--folder", "drafts")
    project.up()
    assert "Registered already, from ONCEBOX_TOKEN" in project.logs(["migrate"])
    assert [grant["revoked_at"] is None for grant in project.oncebox("grant", "list", *whose)] == [False]
    assert len(project.oncebox("token", "list")) == 1


def test_no_secret_is_in_a_log(project: Project) -> None:
    logs = project.logs(tail=100_000)
    assert {name: value for name, value in project.secrets.items() if value in logs} == {}


def test_health_is_the_connection_that_work_comes_by(project: Project) -> None:
    assert {name: project.check_health(name) for name in ("notes", "relay", "worker")} == dict.fromkeys(
        ("notes", "relay", "worker"), (True, "ok")
    )
    project.compose("stop", "rabbitmq")
    for service in ("relay", "worker"):
        eventually(lambda name=service: not project.check_health(name)[0], timeout=20, interval=0.2)
        assert "broker" in project.check_health(service)[1]
    assert project.check_health("notes") == (True, "ok")
    project.compose("start", "rabbitmq")
    for service in ("relay", "worker"):
        eventually(lambda name=service: project.check_health(name)[0], timeout=40, interval=0.2)


def test_workers_drain_and_nothing_is_left_after_down(project: Project) -> None:
    project.compose("stop", "worker", "relay", "notes")
    stopped = {one.service: one.exit_code for one in project.containers() if one.state == "exited"}
    assert stopped == {"migrate": 0, "worker": 0, "relay": 0, "notes": 0}
    assert '"worker_drained"' in project.logs(["worker"])
    project.down()
    assert project.left() == []
