"""From what a command prints, a scrape shows or the receiver answers to statements. No I/O."""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from oncebox_models.states import State
from tests.proof.history.indexed import EXIT_CODES
from tests.proof.history.statements import (
    AbsentSaid,
    Command,
    ExitSaid,
    Key,
    LagSaid,
    ReceiverSaid,
    Said,
    StateSaid,
)

ONCEBOX: Final = (sys.executable, "-m", "oncebox_operate.main")
_NOT_FOUND: Final = 3


class NoStatement(Exception):
    """What came says nothing of what was asked."""


def of_command(key: Key, command: Command, code: int, lines: Sequence[str]) -> list[Said]:
    """`oncebox status --json` and `oncebox wait --json`. Raises NoStatement. code: negative when it was killed."""
    if code == _NOT_FOUND:
        return [AbsentSaid(key)]
    documents = [document for document in _documents(lines) if "state" in document]
    if documents:
        said = _of_operation(documents[0])
        return [said] if code < 0 else [said, ExitSaid(key, command, code, said.state)]
    if code in EXIT_CODES[command]:
        return [ExitSaid(key, command, code)]
    raise NoStatement(f"exit code {code}: {' '.join(lines)[:200]}")


def of_list_command(code: int, lines: Sequence[str]) -> list[Said]:
    """`oncebox list --json`. Raises NoStatement."""
    if code != 0:
        raise NoStatement(f"exit code {code}: {' '.join(lines)[:200]}")
    return [_of_operation(document) for document in _documents(lines)]


def of_lag_command(code: int, lines: Sequence[str]) -> LagSaid:
    """`oncebox lag --json`. Raises NoStatement."""
    for document in _documents(lines):
        if "entries" in document:
            states: Counter[State] = Counter()
            for destination in document["destinations"]:
                for state, depth in destination["states"].items():
                    states[State(state)] += depth["entries"]
            return LagSaid(document["entries"], document["oldest_age_s"], dict(states))
    raise NoStatement(f"exit code {code}: {' '.join(lines)[:200]}")


def of_metrics(status: int, text: str) -> LagSaid:
    """The text of `/metrics`. Raises NoStatement."""
    states: Counter[State] = Counter()
    ages: list[float] = []
    families = text_string_to_metric_families(text) if status == 200 else ()
    for family in families:
        for sample in family.samples:
            match sample.name:
                case "outbox_entries":
                    states[State(sample.labels["state"])] += int(sample.value)
                case "outbox_oldest_entry_age_seconds":
                    ages.append(sample.value)
                case _:
                    pass
    if not ages:
        raise NoStatement(f"{status}: {text[:200]}")
    return LagSaid(sum(states.values()), max(ages), dict(states))


def of_receiver(key: Key, status: int, text: str) -> ReceiverSaid:
    """The note service's `GET /v1/operations/{key}`. Raises NoStatement."""
    if status != 200:
        raise NoStatement(f"{status}: {text[:200]}")
    answer = _documents([text])[0]
    receipt = None
    if answer["note"] is not None:
        receipt = canonical({name: answer[name] for name in ("operation_id", "args_hash", "note")})
    return ReceiverSaid(key, answer["state"], receipt)


def canonical(document: object) -> str:
    """The one form in which receipts are compared: canonical JSON."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _of_operation(document: Mapping[str, Any]) -> StateSaid:
    """One operation as `status`, `wait` and `list` print it."""
    receipt = None if document["receipt"] is None else canonical(document["receipt"])
    key = Key(document["tenant"], document["principal"], document["operation_id"])
    return StateSaid(key, State(document["state"]), document["say"], receipt, document["attempts"])


def _documents(lines: Sequence[str]) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in lines]
    except ValueError as error:
        raise NoStatement(f"not JSON: {error}") from None
