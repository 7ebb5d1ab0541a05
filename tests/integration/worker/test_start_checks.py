"""Before a relay or worker runs: every contradiction is named at once, with what to change, and nothing starts."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oncebox_outbox import registry
from oncebox_worker import preflight, receiver_watch, safe_settings
from oncebox_worker.safe_settings import UnsafeSettings
from tests.integration.worker import parties
from tests.integration.worker.parties import CAPABILITIES, SECRET, Sender
from tests.notes.running import RunningService, running
from tests.support.processes import Processes
from tests.support.tcpproxy import TcpProxy


def refused(capsys: pytest.CaptureFixture[str], check: Callable[[], None], *, code: int) -> list[str]:
    """The faults with which the process ended."""
    with pytest.raises(SystemExit) as ended:
        check()
    assert ended.value.code == code
    said = capsys.readouterr()
    assert said.out == ""
    assert SECRET not in said.err
    return [line.removeprefix("oncebox does not start: ") for line in said.err.splitlines()]


def test_settings_that_fit_start(sender: Sender, service: RunningService, token: str) -> None:
    """The defaults of both sides go together, and the receiver is then known by its identity."""
    preflight.check_worker(sender.worker_settings(service.url, token))
    preflight.check_relay(sender.relay_settings())
    seen = registry.last_seen(sender.worker, "notes")
    assert seen is not None
    assert seen.capabilities.batch_items == 500


def test_our_own_faults_are_named_at_once(sender: Sender, capsys: pytest.CaptureFixture[str]) -> None:
    """Invariant 9: a lease shorter than a call, on a database that is a standby by now."""
    database = str(sender.scalar("select current_database()"))
    sender.change(f'alter database "{database}" set default_transaction_read_only = on')
    lease, read_only = refused(
        capsys, lambda: preflight.check_worker(sender.worker_settings(lease_s=20)), code=1
    )
    assert "lease_s is 20" in lease
    assert "ONCEBOX_LEASE_S to at least 30" in lease
    assert "read-only" in read_only


def test_what_contradicts_the_receiver_is_named_at_once(
    sender: Sender, notes_database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Invariant 9: a deadline the receiver would not admit, chunks it would not take, and a lease that is too short."""
    with running(notes_database, tmp_path, batch_max_items=50, admission_window_seconds=3600) as service:
        settings = sender.worker_settings(service.url, service.token(tenants=["demo"]), lease_s=20, chunk=100)
        faults = refused(capsys, lambda: preflight.check_worker(settings), code=1)
    assert len(faults) == 3
    assert "lease_s is 20" in faults[0]
    assert "259200 s" in faults[1]
    assert "3600 s ahead" in faults[1]
    assert "ONCEBOX_CHUNK to 50" in faults[2]


@pytest.mark.parametrize("receiver_is_up", [True, False])
def test_capabilities_last_seen_count_while_the_receiver_is_down(
    sender: Sender, capsys: pytest.CaptureFixture[str], receiver_is_up: bool
) -> None:
    """Invariant 9: a receiver that does not answer is judged by what it said last; one never seen is waited for."""
    if receiver_is_up:
        sender.see_receiver(batch_items=10)
        faults = refused(capsys, lambda: preflight.check_worker(sender.worker_settings()), code=1)
        assert ["ONCEBOX_CHUNK to 10" in fault for fault in faults] == [True]
    else:
        preflight.check_worker(sender.worker_settings())
        assert registry.last_seen(sender.worker, "notes") is None


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"admission_window_s": 259_199.0}, "259200 s"),
        ({"batch_items": 99}, "ONCEBOX_CHUNK to 99"),
        ({"tombstone_retention_s": 604_839.0}, "forgets a sealed key"),
    ],
)
def test_each_limit_of_the_receiver_is_compared(sender: Sender, told: dict[str, Any], words: str) -> None:
    """One step beyond what fits is refused, with the numbers; the step before it is not."""
    settings = sender.worker_settings()
    exact: dict[str, Any] = {
        "admission_window_s": 604_800.0,
        "batch_items": 100,
        "tombstone_retention_s": 604_840.0,
    }
    safe_settings.check_receiver(settings, replace(CAPABILITIES, **exact))
    with pytest.raises(UnsafeSettings) as unsafe:
        safe_settings.check_receiver(settings, replace(CAPABILITIES, **(exact | told)))
    assert len(unsafe.value.faults) == 1
    assert words in unsafe.value.faults[0]


def test_a_lease_that_just_covers_a_call_is_enough(sender: Sender) -> None:
    """lease >= call + 20 s of settling; one step less is refused."""
    safe_settings.check_times(sender.worker_settings(lease_s=30, call_timeout_s=10))
    with pytest.raises(UnsafeSettings):
        safe_settings.check_times(sender.worker_settings(lease_s=29.9, call_timeout_s=10))


def test_a_database_without_the_schema(
    sender: Sender, empty_database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command to type is named, for a relay and for a worker (with its other faults)."""
    relay = sender.relay_settings(database_url=empty_database)
    assert "oncebox migrate up" in refused(capsys, lambda: preflight.check_relay(relay), code=1)[0]
    worker = sender.worker_settings(database_url=empty_database, lease_s=1)
    faults = refused(capsys, lambda: preflight.check_worker(worker), code=1)
    assert ["lease_s" in faults[0], "oncebox migrate up" in faults[1], len(faults)] == [True, True, 2]


def test_a_database_out_of_reach(sender: Sender, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 9, which says that something else is down, not that our settings are wrong."""
    with TcpProxy(sender.database_url) as proxy:
        proxy.refuse()
        url = parties.through(proxy, sender.database_url)
        relay, worker = sender.relay_settings(database_url=url), sender.worker_settings(database_url=url)
        assert "Connection refused" in refused(capsys, lambda: preflight.check_relay(relay), code=9)[0]
        assert "Connection refused" in refused(capsys, lambda: preflight.check_worker(worker), code=9)[0]


def test_another_receiver_behind_the_address(
    sender: Sender, service: RunningService, token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys were sent to one receiver; another one does not know them, and would execute them again."""
    sender.see_receiver()
    settings = sender.worker_settings(service.url, token)
    (fault,) = refused(capsys, lambda: preflight.check_worker(settings), code=1)
    assert "receiver-1" in fault
    assert sender.scalar("select base_url from oncebox.destination where name = 'notes'") != service.url
    with pytest.raises(registry.OtherReceiver):
        receiver_watch.look(settings, sender.worker)


def test_a_process_ends_with_these_codes(
    sender: Sender, service: RunningService, token: str, processes: Processes
) -> None:
    """A worker's process says it and ends, with Celery's command as with ours; one with settings missing names them all
    and prints no secret, no traceback."""
    unsafe = sender.environment(service.url, token, ONCEBOX_LEASE_S="1")
    plain = parties.start_celery(processes, unsafe, "-P", "threads", ready=False)
    ours = parties.start_worker(processes, unsafe, ready=False)
    sender_gone = {**unsafe, "ONCEBOX_DATABASE_URL": "postgresql://postgres@127.0.0.1:9/none"}
    away = parties.start_celery(processes, sender_gone, "-P", "threads", ready=False)
    missing = {
        "ONCEBOX_DATABASE_URL": "",
        "ONCEBOX_BROKER_URL": "foo://x",
        "ONCEBOX_TOKEN": SECRET,
        "ONCEBOX_CHUNK": "x",
    }
    empty = parties.start_celery(processes, missing, "-P", "threads", ready=False)
    assert (plain.wait(30), ours.wait(30), away.wait(30), empty.wait(30)) == (1, 1, 9, 1)
    for process in (plain, ours, away, empty):
        assert '"start_refused"' in process.log_text()
        assert "Traceback" not in process.log_text()
        assert SECRET not in process.log_text()
    for name in ("ONCEBOX_BROKER_URL", "ONCEBOX_CHUNK", "ONCEBOX_NOTES_URL"):
        assert f"oncebox does not start: {name}: " in empty.log_text()


def test_a_worker_waits_for_a_receiver_that_was_never_seen(
    sender: Sender, service: RunningService, token: str, processes: Processes
) -> None:
    """Invariant 9: it runs, says so, claims nothing; when the receiver is there everything goes out."""
    with TcpProxy(service.url) as proxy:
        proxy.refuse()
        worker = parties.start_worker(processes, sender.environment(f"http://{proxy.address}", token))
        worker.wait_for_log('"receiver_never_seen"', count=2)
        sender.enqueue_named("note-7")
        with sender.running_relay():
            assert sender.calls() == []
            assert sender.stamped() == set()
            proxy.pass_through()
            sender.wait_until("saved", "note-7")
        worker.wait_for_log('"receiver_seen"')
    assert worker.terminate() == 0


def test_a_worker_ends_when_another_receiver_answers(
    sender: Sender, service: RunningService, token: str, processes: Processes
) -> None:
    """At the start nobody answered; then one does that is not the receiver known by that name: drain and end."""
    sender.see_receiver()
    with TcpProxy(service.url) as proxy:
        proxy.refuse()
        environment = sender.environment(f"http://{proxy.address}", token)
        worker = parties.start_worker(processes, environment, ready=False)
        worker.wait_for_log('"receiver_unreachable"')
        # While it starts: its next look, by whichever part of it, meets the stranger.
        proxy.pass_through()
        assert worker.wait(30) == 0
    assert "receiver_refused" in worker.log_text()
    assert sender.calls() == []
