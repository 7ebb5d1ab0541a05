"""The image's health check: is the role that this container runs connected to what it cannot work without?

- `notes serve`: `/readyz` answers 200, which asks its database and compares the tables' version.
- `relay`: its process holds a connection to the broker; with `ONCEBOX_METRICS_PORT`, `/metrics` answers, which
  reads the sender's database.
- `worker`: its process holds a connection to the broker, and that is the one on which it consumes.
- Any other command ends by itself: nothing to check.

The connection is looked up in the kernel's table, since asking the broker would say that a worker consumes, not that
this one does. A broker that is frozen is noticed when the worker's own heartbeats give up, after about a minute.
Exit code 0 or 1; one line says why. Standard library alone: it runs every few seconds in every container.
"""

import os
import socket
import struct
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

_TIMEOUT_S: Final = 3.0
_ESTABLISHED: Final = "01"
_DEFAULT_PORTS: Final = {"amqp": 5672, "amqps": 5671, "redis": 6379, "rediss": 6379}

Endpoint = tuple[str, int]


def role_of(command: Sequence[str]) -> str:
    """The role in a command line, with or without a small init process before it; empty when there is none."""
    for argument, following in pairwise(command):
        if Path(argument).name == "oncebox":
            return following
        if (argument, following) == ("-m", "oncebox_notes"):
            return "notes"
    return "worker" if "oncebox_worker.app" in command else ""


def faults(role: str, environment: Mapping[str, str]) -> Iterator[str]:
    """What is wrong, one sentence each."""
    match role:
        case "notes":
            port = environment.get("ONCEBOX_NOTES_PORT", "8320")
            yield from _http_faults(f"http://127.0.0.1:{port}/readyz")
        case "relay":
            yield from _broker_faults(environment)
            if port := environment.get("ONCEBOX_METRICS_PORT"):
                yield from _http_faults(f"http://127.0.0.1:{port}/metrics")
        case "worker":
            yield from _broker_faults(environment)
        case _:
            pass


def _http_faults(url: str) -> Iterator[str]:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as reply:
            reply.read()
    except urllib.error.HTTPError as error:
        said = error.read(500).decode(errors="replace").strip()
        yield f"{url} answers {error.code}: {said}"
    except OSError as error:
        yield f"{url} does not answer: {error}"


def _broker_faults(environment: Mapping[str, str]) -> Iterator[str]:
    url = urlsplit(environment.get("ONCEBOX_BROKER_URL", ""))
    host, port = url.hostname or "127.0.0.1", url.port or _DEFAULT_PORTS.get(url.scheme, 5672)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        yield f"the broker's name {host} is not known: {error}"
        return
    if {(str(address[0]), port) for *_, address in found}.isdisjoint(connected_to()):
        yield f"no connection to the broker at {host}:{port}"


def connected_to() -> Iterator[Endpoint]:
    """Where the connections of this container lead that are established."""
    for name in ("tcp", "tcp6"):
        table = Path("/proc/net") / name
        lines = table.read_text(encoding="ascii").splitlines()[1:] if table.exists() else []
        for fields in map(str.split, lines):
            if fields[3] == _ESTABLISHED:
                yield _endpoint(fields[2])


def _endpoint(written: str) -> Endpoint:
    """`0100007F:1628`: words of 32 bits as this processor orders them, and the port."""
    address, _, port = written.partition(":")
    words = [int(address[start : start + 8], 16) for start in range(0, len(address), 8)]
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    return socket.inet_ntop(family, struct.pack(f"={len(words)}I", *words)), int(port, 16)


def main() -> int:
    command = Path("/proc/1/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    found = list(faults(role_of(command), os.environ))
    sys.stdout.write(f"{'; '.join(found) or 'ok'}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
