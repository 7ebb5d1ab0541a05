"""The three boundaries, played one after another: before the receiver's commit, after it, many deliveries at once."""

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, cast

import httpx2
import psycopg
from sqlalchemy.orm import Session

from oncebox_models.states import State
from oncebox_operate import shapes
from oncebox_operate.demo import statements
from oncebox_operate.demo.screen import DemoScreen
from oncebox_operate.demo.stage import Stage
from oncebox_operate.demo.strikes import SENDS
from oncebox_operate.demo.witness import DEFINITE, UNKNOWN, Witness, status_when, until
from oncebox_operate.faults.http_proxy import Exchange
from oncebox_operate.up.plan import FOLDER
from oncebox_outbox import Intent, OperationStatus

_PATIENCE_S: Final = 60.0
_DELIVERIES: Final = 32
# A write of the note service that waits for a lock on its table, in the middle of its transaction.
_WAITING: Final = """
    select count(*) from pg_locks where not granted and relation = 'note_version'::regclass
    and database = (select oid from pg_database where datname = current_database())"""


@dataclass(frozen=True, slots=True)
class Boundary:
    """What was broken, what was seen, what was said at the end, and how many notes there are."""

    broken: str
    seen: str
    said: str
    notes: int
    ok: bool

    def __str__(self) -> str:
        return f"Broken: {self.broken}. Seen: {self.seen}. Said: {self.said}"


def play(stage: Stage, screen: DemoScreen) -> Iterator[Boundary]:
    """Play all three; each is shown when it has ended."""
    for number, boundary in enumerate((_before_the_commit, _after_the_commit, _many_at_once), 1):
        with _tended(stage):
            played = boundary(stage)
        screen.line(f"{number}. {played}", "" if played.ok else "bold red")
        yield played


def shape(found: list[Boundary]) -> shapes.Exercise:
    """What `demo --exercise --json` prints."""
    return {
        "boundaries": [
            {
                "broken": one.broken,
                "seen": one.seen,
                "said": one.said,
                "notes": one.notes,
                "ok": one.ok,
            }
            for one in found
        ],
        "ok": all(one.ok for one in found),
    }


def _before_the_commit(stage: Stage) -> Boundary:
    """The note service dies in the middle of its transaction."""
    key = "before-the-commit"
    notes = stage.installation.notes
    if notes is None:
        raise RuntimeError("a stage has a note service while it is open")
    with Witness(stage, key) as witness:
        with _frozen_before_its_commit(stage) as writes:
            _want(stage, key)
            until(writes, "the note service writes")
            os.kill(notes.pid, signal.SIGKILL)
            status_when(stage, key, UNKNOWN)
            seen = f"{stage.notes_of(key)} notes while nobody knew"
        end = status_when(stage, key, DEFINITE)
    return _boundary(stage, "the note service was killed before its commit", seen, end, witness)


def _after_the_commit(stage: Stage) -> Boundary:
    """The note is there, and the reply that says so never arrives."""
    key = "after-the-commit"
    relay = stage.installation.relay
    if relay is None:
        raise RuntimeError("a stage has a relay while it is open")
    with Witness(stage, key) as witness:
        reply = stage.proxy.hold_replies(1, match=SENDS)
        stage.proxy.swallow_replies(match=SENDS, then="reset")
        _want(stage, key)
        reply.wait_until_full(_PATIENCE_S)
        # The relay stands still: this is the moment between the loss and the question.
        os.kill(relay.pid, signal.SIGSTOP)
        reply.release()
        status_when(stage, key, UNKNOWN)
        seen = f"{stage.notes_of(key)} note while nobody knew"
        os.kill(relay.pid, signal.SIGCONT)
        end = status_when(stage, key, DEFINITE)
    return _boundary(stage, "the reply was dropped after the commit", seen, end, witness)


def _many_at_once(stage: Stage) -> Boundary:
    """The worker's own delivery and 31 more of the same bytes arrive together."""
    key = f"{_DELIVERIES}-at-once"
    with Witness(stage, key) as witness, ThreadPoolExecutor(_DELIVERIES) as pool:
        together = stage.proxy.hold(_DELIVERIES, match="POST /v1/notes*")
        _want(stage, key)
        with stage.engine.connect() as connection:
            arguments = str(connection.execute(statements.ARGUMENTS, {"operation_id": key}).scalar_one())
        replies = [pool.submit(_deliver, stage, key, arguments) for _ in range(_DELIVERIES - 1)]
        together.wait_until_full(_PATIENCE_S)
        verdicts = Counter(reply.result() for reply in replies)
        end = status_when(stage, key, DEFINITE)
    verdicts.update(
        _of_worker(exchange) for exchange in stage.proxy.requests(SENDS) if key.encode() in exchange.body
    )
    counted = ", ".join(f"{verdicts[name]} {name}" for name in _Verdict if verdicts[name])
    broken = f"{_DELIVERIES} deliveries of one key arrived at once"
    return _boundary(stage, broken, counted, end, witness, right=verdicts[_Verdict.EXECUTED] == 1)


class _Verdict(StrEnum):
    """What became of one delivery, in the words of the line."""

    EXECUTED = "executed"
    REPLAYED = "given the same receipt"
    IN_PROGRESS = "told that one is under way"
    OTHER = "answered otherwise"


def _deliver(stage: Stage, key: str, arguments: str) -> _Verdict:
    """One delivery by hand: the frozen bytes, with the workers' token."""
    reply = httpx2.post(
        f"{stage.proxy.url}/v1/notes",
        content=arguments.encode(),
        headers={
            "Authorization": f"Bearer {stage.places.token}",
            "On-Behalf-Of": f"{stage.places.tenant}/{stage.places.principal}",
            "Content-Type": "application/json",
            "Idempotency-Key": key,
            "Operation-Deadline": (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
        timeout=_PATIENCE_S,
    )
    return _verdict(reply.status_code, replayed="idempotent-replayed" in reply.headers)


def _of_worker(exchange: Exchange) -> _Verdict:
    """The same of a batch of one that a worker sent."""
    if exchange.reply_body is None:
        return _Verdict.OTHER
    (item,) = cast("list[dict[str, object]]", json.loads(exchange.reply_body)["items"])  # the wire's contract
    return _verdict(cast("int", item["status"]), replayed=item.get("replayed") is True)


def _verdict(status: int, *, replayed: bool) -> _Verdict:
    match status:
        case 201:
            return _Verdict.REPLAYED if replayed else _Verdict.EXECUTED
        case 409:
            return _Verdict.IN_PROGRESS
        case _:
            return _Verdict.OTHER


def _want(stage: Stage, key: str) -> None:
    why = Intent(run="exercise", step=key, purpose="play a boundary")
    with Session(stage.engine) as session, session.begin():
        stage.outbox.save_note(
            session,
            why,
            operation_id=key,
            folder=FOLDER,
            title=f"Boundary {key}",
            text="Reef B recovers faster.",
        )


def _boundary(
    stage: Stage, broken: str, seen: str, end: OperationStatus, witness: Witness, *, right: bool = True
) -> Boundary:
    count = stage.notes_of(end.operation_id)
    untrue = witness.untrue()
    notes = "1 note" if count == 1 else f"{count} notes"
    said = " ".join([f"{', '.join(witness.said())}.", *untrue])
    ok = right and end.state is State.SAVED and count == 1 and not untrue
    return Boundary(broken, f"{seen}, and {notes} in the end", said, count, ok)


@contextmanager
def _frozen_before_its_commit(stage: Stage) -> Generator[Callable[[], bool]]:
    """Inside it a write of the note service waits in the middle of its transaction. Yields whether one does."""
    with psycopg.connect(stage.places.notes_database_url) as freezing:
        freezing.execute("lock table note_version in share mode")

        def waits() -> bool:
            row = freezing.execute(_WAITING).fetchone()
            return row is not None and int(row[0]) > 0

        yield waits


@contextmanager
def _tended(stage: Stage) -> Generator[None]:
    """Parts that are killed inside it are started again."""
    over = threading.Event()
    failures: list[Exception] = []

    def tend() -> None:
        try:
            while not over.wait(0.1):
                stage.installation.tend()
        except Exception as error:  # a thread's failure must reach whoever started it
            failures.append(error)

    thread = threading.Thread(target=tend, name="tending", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if failures:
        raise failures[0]
