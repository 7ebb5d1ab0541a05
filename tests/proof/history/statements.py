"""What was said to anyone during a run: status reads, command line, metrics, the receiver's status, tool results.

Times are unix seconds by the clock of the machine that everything runs on. `Said` is a closed union; a new kind of
statement needs a rule that judges it (`rules/`).
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Discriminator

from oncebox_models.states import State


class Key(NamedTuple):
    """Under which a write is known to sender and receiver."""

    tenant: str
    principal: str
    operation_id: str


ReceiverState: TypeAlias = Literal["completed", "sealed", "in_progress", "not_found"]
Did: TypeAlias = Literal["settled", "sealing", "nothing"]
Command: TypeAlias = Literal["status", "wait"]


@dataclass(frozen=True, slots=True)
class StateSaid:
    """The outbox on one operation: Python API, `status --json`, `wait --json`, `list --json`, a tool's result.

    sentence: what people read; None where none was given. receipt: canonical JSON. attempts: None once settled.
    """

    key: Key
    state: State
    sentence: str | None = None
    receipt: str | None = None
    attempts: int | None = None
    kind: Literal["state"] = "state"


@dataclass(frozen=True, slots=True)
class AbsentSaid:
    """The outbox: there is no such operation (`OperationNotFound`, exit code 3)."""

    key: Key
    kind: Literal["absent"] = "absent"


@dataclass(frozen=True, slots=True)
class EnqueueSaid:
    """An enqueue whose commit was confirmed at `answered_at`. One whose commit failed or hung is a `NoAnswer`.

    receipt: canonical JSON, of an operation that was saved already.
    """

    key: Key
    created: bool
    state: State
    receipt: str | None = None
    kind: Literal["enqueue"] = "enqueue"


@dataclass(frozen=True, slots=True)
class RollbackSaid:
    """The agent enqueued and rolled back; nothing of it may be anywhere."""

    key: Key
    kind: Literal["rollback"] = "rollback"


@dataclass(frozen=True, slots=True)
class CancelSaid:
    """What a committed cancel did. ``settled``: nothing was ever sent, so it is not saved."""

    key: Key
    what: Did
    kind: Literal["cancel"] = "cancel"


@dataclass(frozen=True, slots=True)
class ReceiverSaid:
    """The note service on one key. receipt: canonical JSON of `operation_id`, `args_hash` and `note`."""

    key: Key
    state: ReceiverState
    receipt: str | None = None
    kind: Literal["receiver"] = "receiver"


@dataclass(frozen=True, slots=True)
class LagSaid:
    """All open operations, from `lag --json` or `/metrics`.

    by_state: may be empty where only the total was said. oldest_age_s: 0 when there is none.
    """

    entries: int
    oldest_age_s: float
    by_state: dict[State, int] = field(default_factory=dict[State, int])
    kind: Literal["lag"] = "lag"


@dataclass(frozen=True, slots=True)
class ExitSaid:
    """The exit code of `oncebox status` or `oncebox wait`. state: what the same command printed; None if nothing."""

    key: Key
    command: Command
    exit_code: int
    state: State | None = None
    kind: Literal["exit"] = "exit"


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nothing was said: an error, a timeout, a refused connection. Counted, never judged.

    about: what was asked (`status`, `enqueue`, `lag`, …). key: which operation, if it was about one.
    """

    about: str
    why: str
    key: Key | None = None
    kind: Literal["none"] = "none"


Said: TypeAlias = Annotated[
    StateSaid
    | AbsentSaid
    | EnqueueSaid
    | RollbackSaid
    | CancelSaid
    | ReceiverSaid
    | LagSaid
    | ExitSaid
    | NoAnswer,
    Discriminator("kind"),
]


@dataclass(frozen=True, slots=True)
class Statement:
    """Who was told what. What it is based on was read at some moment from `asked_at` to `answered_at`.

    who: the asker and the way, such as ``agent-3 api`` or ``watcher cli``.
    """

    who: str
    asked_at: float
    answered_at: float
    body: Said

    def __post_init__(self) -> None:
        if self.answered_at < self.asked_at:
            raise ValueError(f"{self.who} was answered before it asked: {self}")
