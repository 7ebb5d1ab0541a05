"""One thing that was looked at, and what to type when it is not as it should be."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How it is. `warn`: it may be right, and a person should know."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """`says` is what was seen, `do` a command to type. unreachable: a party that does not answer."""

    name: str
    verdict: Verdict
    says: str
    do: str | None = None
    unreachable: bool = False


def ok(name: str, says: str) -> Check:
    return Check(name, Verdict.OK, says)


def warn(name: str, says: str, do: str) -> Check:
    return Check(name, Verdict.WARN, says, do)


def fail(name: str, says: str, do: str) -> Check:
    return Check(name, Verdict.FAIL, says, do)


def unreachable(name: str, says: str, do: str) -> Check:
    return Check(name, Verdict.FAIL, says, do, unreachable=True)
