"""The points of the matrix, out of the code's own lists: what is named there has rows here."""

import inspect
import re
from typing import Final

from sqlalchemy import TextClause

from oncebox_destinations.protocol import Destination
from oncebox_notes import statements as receivers
from oncebox_operate import statements as commands
from oncebox_outbox import statements as outbox
from oncebox_worker.publishing import Publisher
from tests.proof.matrix.moments import Seam

_NAMED: Final = re.compile(r"/\* oncebox:(\w+) \*/")
_STATEMENT: Final = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b")
# Beside the lists. A commit has no name in the code; it decides all the same, for each kind of transaction.
COMMITS: Final = ("COMMIT enqueue", "COMMIT cancel")
TRANSACTION: Final = ("BEGIN", "COMMIT")
ACKS: Final = ("dead ack", "task ack")


def points(seam: Seam) -> list[str]:
    """All points of a seam, sorted."""
    match seam:
        case Seam.SENDER_SQL:
            return sorted([*outbox.NAMES, *command_statements(), *COMMITS])
        case Seam.HTTP:
            return sorted(_calls(Destination))
        case Seam.BROKER:
            return sorted([*_calls(Publisher), *ACKS])
        case Seam.RECEIVER_SQL:
            return sorted([*receiver_statements(), *TRANSACTION])


def command_statements() -> list[str]:
    """The commands' own statements, which carry names and are not in the outbox's list."""
    return [
        found[1]
        for value in vars(commands).values()
        if isinstance(value, TextClause) and (found := _NAMED.match(value.text)) is not None
    ]


def receiver_statements() -> dict[str, str]:
    """The note service's statements by their names in its module. What is only part of one is none."""
    return {name: sql for name, sql in _constants().items() if _STATEMENT.match(sql)}


def receiver_expressions() -> list[str]:
    """The constants there that are no statements."""
    return sorted(name for name, sql in _constants().items() if not _STATEMENT.match(sql))


def _constants() -> dict[str, str]:
    return {
        name: value
        for name, value in vars(receivers).items()
        if isinstance(value, str) and re.fullmatch("[A-Z][A-Z_]*", name)
    }


def _calls(protocol: type) -> list[str]:
    """What a protocol lets its user ask another party. Closing asks for nothing."""
    return [
        name
        for name, member in vars(protocol).items()
        if inspect.isfunction(member) and not name.startswith("_") and name not in ("close", "aclose")
    ]
