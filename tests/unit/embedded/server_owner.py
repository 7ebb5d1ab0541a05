"""A program that starts one embedded server and then does what its test wants of an owner.

    server_owner.py postgres|valkey DATA [wait|fork]

Prints one JSON line {"pid", "url", "supervisor", "sockets"} when the server is ready. ``wait`` waits for a line
on standard input or the end of the world; ``fork`` leaves a child behind that has all our descriptors.
"""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from oncebox_operate.embedded import EmbeddedError, EmbeddedPostgres, EmbeddedValkey


def parent_of(pid: int) -> int:
    return int(Path("/proc", str(pid), "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


def main(kind: str, data: Path, then: str) -> int:
    server = EmbeddedPostgres(data) if kind == "postgres" else EmbeddedValkey(data)
    try:
        server.start()
    except EmbeddedError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 1
    ready: dict[str, object] = {"pid": server.pid, "url": server.url(), "supervisor": parent_of(server.pid)}
    if isinstance(server, EmbeddedPostgres):
        ready["sockets"] = parse_qs(urlsplit(server.socket_url()).query)["host"][0]
    if then == "fork" and os.fork() == 0:
        ready["child"] = os.getpid()
        print(json.dumps(ready), flush=True)
        time.sleep(60)
        os._exit(0)
    if then != "fork":
        print(json.dumps(ready), flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()
    # Ctrl-C went to the whole process group; the server must outlast it, for our drain.
    limit = time.monotonic() + 1.0
    while server.exit_status() is None and time.monotonic() < limit:
        time.sleep(0.05)
    print(json.dumps({"after_interrupt": server.exit_status()}), flush=True)
    server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
