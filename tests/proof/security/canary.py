"""Secrets made to be looked for: random, so that a find is never chance, with what encoders like to change."""

import secrets
import string
from dataclasses import dataclass

from tests.proof.security.scanner import PART

_LETTERS = string.ascii_letters + string.digits


def _random(length: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(length))


@dataclass(frozen=True, slots=True)
class Canary:
    """A note that no log may tell, title and text. It begins with what would be cut off last."""

    title: str
    text: str

    @classmethod
    def hatch(cls) -> "Canary":
        runs = [_random(PART + 2) for _ in range(4)]
        return cls(
            title=f'{_random(PART + 4)} "{_random(PART)}"',
            text=f'{runs[0]} {runs[1]}"é{runs[2]}\n🪸 {runs[3]}/%\\' + " and so on" * 40,
        )

    @property
    def secret(self) -> str:
        """Of its text what is random."""
        return self.text.partition(" and so on")[0]

    def named(self, whose: str) -> dict[str, str]:
        """What the scanner is told to look for."""
        return {f"the text of {whose}": self.secret, f"the title of {whose}": self.title}


def secret_of(token: str) -> str:
    """What of a token is secret: its id is in the access log by design."""
    return token.split("_", 2)[2]
