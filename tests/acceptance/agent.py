"""An agent as a program of its own: it commits wishes to save notes, and is watched or dies while it does.

python -m tests.acceptance.agent watched N PORT     N enqueues; prints which sockets it had
python -m tests.acceptance.agent dies-before-commit OPERATION_ID
python -m tests.acceptance.agent dies-after-commit OPERATION_ID
"""

import json
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import create_engine, make_url
from sqlalchemy.orm import Session

from oncebox_outbox import Intent, Outbox

OUTBOX = Outbox(tenant="demo", principal="researcher", destination="notes")
WHY = Intent(run="run-42", step="summarise", purpose="keep a finding")
# What would be loaded by an enqueue that talks to the broker or to the receiver.
NETWORK = ("celery", "kombu", "amqp", "redis", "httpx2")
AUDITED = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo")


def save(session: Session, operation_id: str) -> None:
    OUTBOX.save_note(
        session, WHY, operation_id=operation_id, folder="drafts", title="Finding", text=f"Of {operation_id}."
    )


def watched(count: int, database_port: int) -> None:
    """Commit one by one; sockets of the interpreter are seen by its audit hook, those of C code in /proc."""
    attempted: list[str] = []

    def hook(event: str, arguments: object) -> None:
        if event in AUDITED:
            attempted.append(f"{event} {arguments}")

    sys.addaudithook(hook)
    engine = _engine()
    others: set[str] = set()
    seen = 0
    for number in range(count):
        with Session(engine) as session, session.begin():
            save(session, f"frozen-{number}")
        sockets = set(own_sockets())
        seen += f"tcp to port {database_port}" in sockets
        others |= sockets - {f"tcp to port {database_port}"}
    print(
        json.dumps(
            {
                "committed": count,
                "attempted": attempted,
                "other_sockets": sorted(others),
                "looks_with_the_database_socket": seen,
                "network_modules": [name for name in NETWORK if name in sys.modules],
            }
        )
    )


def own_sockets() -> Iterable[str]:
    """Each socket this process has open, by where it leads."""
    leads_to = dict(_tcp_peers())
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = descriptor.readlink().name
        except FileNotFoundError:
            continue  # the descriptor of this very look
        if target.startswith("socket:["):
            inode = target.removeprefix("socket:[").removesuffix("]")
            yield leads_to.get(inode, f"socket {inode}, not TCP")


def _tcp_peers() -> Iterable[tuple[str, str]]:
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            yield fields[9], f"tcp to port {int(fields[2].rpartition(':')[2], 16)}"


def dies(operation_id: str, *, committed: bool) -> None:
    """kill -9 as the first thing after the commit, or as the last thing before it."""
    with Session(_engine()) as session:
        save(session, operation_id)
        if committed:
            session.commit()
        os.kill(os.getpid(), signal.SIGKILL)


def _engine():
    url = make_url(os.environ["ONCEBOX_DATABASE_URL"]).set(drivername="postgresql+psycopg")
    return create_engine(url)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["watched", count, port]:
            watched(int(count), int(port))
        case ["dies-before-commit", operation_id]:
            dies(operation_id, committed=False)
        case ["dies-after-commit", operation_id]:
            dies(operation_id, committed=True)
        case _:
            sys.exit(__doc__)
