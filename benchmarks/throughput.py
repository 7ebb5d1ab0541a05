"""How many operations a second go the whole way: from the first enqueue to the last receipt, every party on this machine.

    python benchmarks/throughput.py [--operations 20000] [--chunk 100] [--workers 1] [--concurrency 4]

It makes two databases of its own on the server at ONCEBOX_BENCH_DATABASE_URL (default: the local one), starts the note
service, a relay and the workers as processes, enqueues, and waits for the last receipt. It refuses to report a number
when a database does not keep what it confirms, or when the receiver's own count of notes is not the operations'.
"""

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
from sqlalchemy import create_engine

from oncebox_operate import migrate
from oncebox_outbox import Enqueued, Intent, Outbox, Write

ADMIN_URL = os.environ.get("ONCEBOX_BENCH_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
BROKER_URL = os.environ.get("ONCEBOX_BENCH_BROKER_URL", "amqp://guest:guest@127.0.0.1:5672//")
DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
WRITES_A_TRANSACTION = 500
PORT = 8397


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--operations", type=int, default=20_000)
    options.add_argument("--chunk", type=int, default=100)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--concurrency", type=int, default=4)
    wanted = options.parse_args()
    with ExitStack() as stack:
        sender = stack.enter_context(database("sender"))
        notes = stack.enter_context(database("notes"))
        durable = {"sender": durability(sender), "notes": durability(notes)}
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="oncebox-bench-")))
        start_parties(stack, sender, notes, logs, wanted)
        enqueue_s, total_s = run(sender, wanted.operations)
        found = scalar(notes, "select count(*) from note")
    print(json.dumps(report(wanted, durable, enqueue_s, total_s, found), indent=2))
    if found != wanted.operations:
        raise SystemExit(f"the receiver holds {found} notes for {wanted.operations} operations: void")


def report(
    wanted: argparse.Namespace,
    durable: dict[str, dict[str, str]],
    enqueue_s: float,
    total_s: float,
    notes: int,
) -> dict[str, object]:
    return {
        "operations": wanted.operations,
        "chunk": wanted.chunk,
        "workers": wanted.workers,
        "concurrency": wanted.concurrency,
        "enqueue_per_s": round(wanted.operations / enqueue_s),
        "operations_per_s": round(wanted.operations / total_s),
        "seconds": round(total_s, 2),
        "notes_counted_by_receiver": notes,
        "durability": durable,
    }


@contextmanager
def database(name: str) -> Generator[str]:
    """A database of our own, gone afterwards."""
    unique = f"oncebox_bench_{name}_{secrets.token_hex(4)}"
    with psycopg.connect(ADMIN_URL, autocommit=True) as admin:
        admin.execute(f"create database {unique}")
        try:
            yield ADMIN_URL.rsplit("/", 1)[0] + f"/{unique}"
        finally:
            admin.execute(f"drop database {unique} with (force)")


def durability(url: str) -> dict[str, str]:
    """The settings that make a commit a commit; ends the run when one is off."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select name, setting from pg_settings where name = any(%s) order by name", [list(DURABLE)]
        ).fetchall()
        found: dict[str, str] = dict(rows)
    if any(value != "on" for value in found.values()):
        raise SystemExit(f"{url.rsplit('/', 1)[1]}: {found}; all three must be on")
    return found


def start_parties(stack: ExitStack, sender: str, notes: str, logs: Path, wanted: argparse.Namespace) -> None:
    """The note service, a relay and the workers, each a process of its own."""
    environment = {
        **os.environ,
        "ONCEBOX_DATABASE_URL": sender,
        "ONCEBOX_NOTES_DATABASE_URL": notes,
        "ONCEBOX_NOTES_URL": f"http://127.0.0.1:{PORT}",
        "ONCEBOX_NOTES_PORT": str(PORT),
        "ONCEBOX_BROKER_URL": BROKER_URL,
        "ONCEBOX_QUEUE_PREFIX": f"bench-{secrets.token_hex(4)}",
        "ONCEBOX_CHUNK": str(wanted.chunk),
        "ONCEBOX_CONCURRENCY": str(wanted.concurrency),
        "ONCEBOX_LOG_LEVEL": "warning",
    }
    migrate.up(sender)
    note_service(environment, "migrate", "up")
    token = note_service(
        environment,
        "token",
        "create",
        "--tenant=bench",
        "--principal=worker",
        "--delegate",
        "--tenants=bench",
    )
    note_service(environment, "grant", "add", "--tenant=bench", "--principal=agent", "--folder=drafts")
    environment["ONCEBOX_TOKEN"] = json.loads(token)["token"]
    oncebox = [str(Path(sys.executable).with_name("oncebox"))]
    start(stack, logs / "notes", [sys.executable, "-m", "oncebox_notes", "serve"], environment)
    start(stack, logs / "relay", [*oncebox, "relay"], environment)
    for n in range(wanted.workers):
        start(stack, logs / f"worker-{n}", [*oncebox, "worker"], environment)
    until(
        lambda: (
            scalar(sender, "select count(*) from oncebox.destination where capabilities is not null") == 1
        ),
        logs,
    )


def note_service(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "oncebox_notes", *arguments],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def start(stack: ExitStack, log: Path, command: list[str], environment: dict[str, str]) -> None:
    """Start a process with its output in `log`; it is ended with the run."""
    output = stack.enter_context(log.open("wb"))
    process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)

    def end() -> None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(end)


def run(sender: str, operations: int) -> tuple[float, float]:
    """Enqueue all and wait for the last receipt; seconds to the last commit, and to the last receipt."""
    engine = create_engine(migrate.sqlalchemy_url(sender))
    outbox = Outbox(tenant="bench", principal="agent")
    started = time.monotonic()
    for batch in batches(operations):
        with engine.begin() as connection:
            outcomes = outbox.enqueue_many(connection, batch)
        if not all(isinstance(outcome, Enqueued) for outcome in outcomes):
            raise SystemExit(f"not enqueued: {outcomes[0]}")
    enqueued_s = time.monotonic() - started
    with psycopg.connect(sender, autocommit=True) as watch:
        until(lambda: watch.execute("select from oncebox.outbox_entry limit 1").fetchone() is None, None)
    total_s = time.monotonic() - started
    engine.dispose()
    saved = scalar(sender, "select count(*) from oncebox.operation where final = 'saved'")
    if saved != operations:
        raise SystemExit(f"{saved} of {operations} operations are saved: void")
    return enqueued_s, total_s


def batches(operations: int) -> Iterator[list[Write]]:
    for first in range(0, operations, WRITES_A_TRANSACTION):
        yield [
            Write(
                Intent(run="bench", step=f"step-{n}", purpose="measure"),
                {"folder": "drafts", "title": f"Finding {n}", "text": f"Reef {n} recovers faster. " * 20},
                operation_id=f"note-{n}",
            )
            for n in range(first, min(first + WRITES_A_TRANSACTION, operations))
        ]


def scalar(url: str, sql: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(sql.encode()).fetchone()
        return int(row[0]) if row else 0


def until(condition: Callable[[], bool], logs: Path | None, timeout_s: float = 300.0) -> None:
    """Look often until the condition holds; shows the parties' last words when it does not."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            tails = [f"{log.name}: {log.read_text()[-500:]}" for log in logs.iterdir()] if logs else []
            raise SystemExit("\n".join(["not finished in time", *tails]))
        time.sleep(0.05)


if __name__ == "__main__":
    main()
