"""Keeps the embedded PostgreSQL of one test session, for as long as that session's pytest runs.

    python -m tests.support.postgres_holder FOLDER PYTEST_PID

A process of its own, because with pytest-xdist the worker that needs the server first may end first.
It writes the address to FOLDER/url; when pytest is gone, however it went, FOLDER goes too.
"""

import os
import select
import shutil
import signal
import sys
from pathlib import Path

from oncebox_operate.embedded import EmbeddedPostgres


def main(folder: Path, pytest_pid: int) -> None:
    # Ctrl-C is for pytest: tests that are still being torn down need their databases.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pytest = os.pidfd_open(pytest_pid)
    try:
        with EmbeddedPostgres(folder / "server", settings={"max_connections": "300"}) as server:
            new = folder / "url.new"
            new.write_text(server.url("postgres"), encoding="utf-8")
            new.rename(folder / "url")
            select.select([pytest], [], [])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
