"""Asking, and writing down what was said: by the Python API, the command line, metrics, the receiver's status.

Each function records at least one statement, and returns what it recorded. Whatever fails to answer is a `NoAnswer`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from subprocess import SubprocessError
from typing import Final

import httpx2
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from oncebox_outbox import OperationNotFound, OperationStatus, Outbox, Write
from oncebox_outbox.cancelling import cancel
from oncebox_outbox.errors import RetryTransaction, SchemaMissing
from tests.proof.history import answers
from tests.proof.history.recorder import Recorder
from tests.proof.history.statements import (
    AbsentSaid,
    CancelSaid,
    Command,
    EnqueueSaid,
    Key,
    NoAnswer,
    Said,
    StateSaid,
)
from tests.support import processes

CLI_TIMEOUT_S: Final = 60.0
HTTP_TIMEOUT_S: Final = 10.0
_FAILURES: Final = (
    SQLAlchemyError,
    RetryTransaction,
    SchemaMissing,
    httpx2.HTTPError,
    OSError,
    SubprocessError,
    answers.NoStatement,
)


class Asker:
    """Somebody who asks. who: as in `Statement`; name the way, too (``watcher cli``)."""

    def __init__(self, recorder: Recorder, who: str) -> None:
        self._recorder = recorder
        self._who = who

    def enqueue(self, engine: Engine, outbox: Outbox, write: Write, key: Key) -> list[Said]:
        """Commit a write in a transaction of its own. Raises InvalidOperation and ArgumentConflict."""

        def question() -> list[Said]:
            with Session(engine) as session, session.begin():
                held = outbox.enqueue(session, write)
            receipt = None if held.receipt is None else held.receipt.text
            return [EnqueueSaid(key, held.created, held.state, receipt)]

        return self.ask("enqueue", question, key)

    def status(self, engine: Engine, outbox: Outbox, operation_id: str) -> list[Said]:
        """`Outbox.status` in a transaction of its own."""
        key = Key(outbox.tenant, outbox.principal, operation_id)

        def question() -> list[Said]:
            with Session(engine) as session:
                return [_state_said(outbox.status(session, operation_id))]

        return self.ask("status", question, key)

    def wait(self, engine: Engine, outbox: Outbox, operation_id: str, *, timeout_s: float) -> list[Said]:
        """`Outbox.wait`."""
        key = Key(outbox.tenant, outbox.principal, operation_id)
        return self.ask(
            "wait", lambda: [_state_said(outbox.wait(engine, operation_id, timeout=timeout_s))], key
        )

    def cancel(self, engine: Engine, outbox: Outbox, operation_id: str) -> list[Said]:
        """Cancel it in a transaction of its own, and say what is known of it in the same."""
        key = Key(outbox.tenant, outbox.principal, operation_id)

        def question() -> list[Said]:
            with Session(engine) as session, session.begin():
                did = cancel(session, outbox.status(session, operation_id).id)
                known = _state_said(outbox.status(session, operation_id))
            return [CancelSaid(key, did.value), known]

        return self.ask("cancel", question, key)

    def command(
        self, command: Command, key: Key, environment: Mapping[str, str], *options: str
    ) -> list[Said]:
        """`oncebox status` or `oncebox wait`, with its exit code."""
        named = [key.operation_id, "--tenant", key.tenant, "--principal", key.principal, "--json"]

        def question() -> list[Said]:
            code, lines = _oncebox([command, *named, *options], environment)
            return answers.of_command(key, command, code, lines)

        return self.ask(command, question, key)

    def list_command(self, environment: Mapping[str, str], *options: str) -> list[Said]:
        """`oncebox list`; no statement at all when nothing is listed."""

        def question() -> list[Said]:
            code, lines = _oncebox(["list", "--json", *options], environment)
            return answers.of_list_command(code, lines)

        return self.ask("list", question)

    def lag_command(self, environment: Mapping[str, str]) -> list[Said]:
        """`oncebox lag`."""

        def question() -> list[Said]:
            code, lines = _oncebox(["lag", "--json"], environment)
            return [answers.of_lag_command(code, lines)]

        return self.ask("lag", question)

    def metrics(self, url: str) -> list[Said]:
        """A scrape; `url` ends with ``/metrics``."""

        def question() -> list[Said]:
            reply = httpx2.get(url, timeout=HTTP_TIMEOUT_S)
            return [answers.of_metrics(reply.status_code, reply.text)]

        return self.ask("metrics", question)

    def receiver(self, http: httpx2.Client, key: Key) -> list[Said]:
        """The note service's status of a key. The client has its address and a token that may act for the key's owner."""

        def question() -> list[Said]:
            owner = {"On-Behalf-Of": f"{key.tenant}/{key.principal}"}
            reply = http.get(f"/v1/operations/{key.operation_id}", headers=owner)
            return [answers.of_receiver(key, reply.status_code, reply.text)]

        return self.ask("receiver", question, key)

    def ask(self, about: str, question: Callable[[], Sequence[Said]], key: Key | None = None) -> list[Said]:
        """Ask and record, for a question of the caller's own. A failure to answer is recorded; others are raised."""
        asked_at = time.time()
        told: list[Said]
        try:
            told = list(question())
        except OperationNotFound:
            told = [AbsentSaid(key)] if key is not None else [NoAnswer(about, "OperationNotFound")]
        except _FAILURES as error:
            told = [NoAnswer(about, _in_words(error), key)]
        answered_at = max(asked_at, time.time())
        for body in told:
            self._recorder.record(self._who, asked_at, answered_at, body)
        return told


def _state_said(known: OperationStatus) -> StateSaid:
    key = Key(known.tenant, known.principal, known.operation_id)
    receipt = None if known.receipt is None else known.receipt.text
    return StateSaid(key, known.state, known.say, receipt, known.attempts)


def _oncebox(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, list[str]]:
    done = processes.run([*answers.ONCEBOX, *arguments], env=environment, timeout=CLI_TIMEOUT_S)
    return done.returncode, done.stdout.splitlines()


def _in_words(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
