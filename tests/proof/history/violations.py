"""What a checker finds, and what a rule is."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from tests.proof.history.indexed import History
from tests.proof.history.statements import Key, Statement


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. key: None when it is no single operation's. statements: those that show it."""

    key: Key | None
    says: str
    statements: tuple[Statement, ...] = ()


Rule: TypeAlias = Callable[[History], Iterable[Finding]]
"""One reason why a history may be untrue. Its function name is the rule's name."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A finding, with the name of the rule that it breaks."""

    rule: str
    key: Key | None
    says: str
    statements: tuple[Statement, ...]

    def __str__(self) -> str:
        about = "" if self.key is None else f" {'/'.join(self.key)}"
        told = "".join(
            f"\n    {said.who}, asked {said.asked_at:.6f}, answered {said.answered_at:.6f}: {said.body}"
            for said in self.statements
        )
        return f"{self.rule}{about}: {self.says}{told}"
