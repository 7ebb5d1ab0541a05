"""Processes of tests are waited for with a limit, show their log, and are never left behind."""

import os
import sys
from pathlib import Path

import pytest

from tests.support.polling import eventually
from tests.support.processes import ProcessEndedError, Processes, run

SERVE = "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler); print('port', s.server_port, flush=True); s.serve_forever()"
FORK = "import os, time; print('child', os.fork(), flush=True); time.sleep(60)"


def test_a_process_is_waited_for_by_log_port_and_http(processes: Processes) -> None:
    server = processes.start_python("server", "-c", SERVE)
    port = int(server.wait_for_log(r"^port (\d+)$").group(1))
    server.wait_for_port(port)
    server.wait_for_http(f"http://127.0.0.1:{port}/no-such-file", status=404)
    assert server.terminate() == -15


def test_a_process_that_ends_fails_the_wait_at_once_and_shows_its_log(processes: Processes) -> None:
    failing = processes.start_python("failing", "-c", "import sys; print('the cause'); sys.exit(3)")
    with pytest.raises(ProcessEndedError, match=r"ended with 3(?s:.*)the cause"):
        failing.wait_for_log("never", timeout=60)


def test_children_of_a_killed_process_are_reaped_with_the_test(processes: Processes) -> None:
    parent = processes.start_python("parent", "-c", FORK)
    child = int(parent.wait_for_log(r"^child ([1-9]\d*)$").group(1))
    parent.kill()
    os.kill(child, 0)
    processes.reap()

    def has_ended() -> bool:
        try:
            stat = Path("/proc", str(child), "stat").read_text(encoding="utf-8")
        except FileNotFoundError:
            return True
        return stat.rpartition(")")[2].split()[0] == "Z"

    eventually(has_ended)


def test_a_command_that_runs_to_its_end_is_the_callers_to_judge() -> None:
    done = run([sys.executable, "-c", "import sys; print(sys.stdin.read()); sys.exit(4)"], stdin="words")
    assert (done.returncode, done.stdout) == (4, "words\n")
