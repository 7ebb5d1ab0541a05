"""What an installation is to be, as a value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from oncebox_operate.database_failures import Server

TENANT: Final = "demo"
PRINCIPAL: Final = "researcher"
FOLDER: Final = "drafts"
WORKER_PRINCIPAL: Final = "worker"
NOTES_PORT: Final = 8320
"""Where the note service listens unless somebody else does."""


def unchanged(url: str) -> str:
    """Workers reach the note service at its own address."""
    return url


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`database` and `broker_url` None: servers of our own. `notes_port` None: 8320, or a free one when it is taken.

    variables: what the processes get on top of `environment`, which is ours.
    detour: from the note service's URL to the one that workers are told.
    """

    data: Path
    workers: int = 2
    database: Server | None = None
    broker_url: str | None = None
    notes_port: int | None = None
    environment: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    detour: Callable[[str], str] = unchanged


class Reporter(Protocol):
    """Is told how an installation comes up, lives and ends. Called from several threads."""

    def starting(self, part: str) -> None: ...

    def ready(self, part: str, seconds: float, detail: str) -> None: ...

    def said(self, message: str) -> None:
        """Something that a person should know."""
        ...

    def stopping(self, part: str) -> None: ...

    def stopped(self, part: str, seconds: float, detail: str) -> None: ...
