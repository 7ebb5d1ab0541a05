"""Who may act for whom: principals, delegates, and the form in which a principal is written."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
"""A tenant or a principal. No slash: `tenant/principal` has exactly one reading."""

_TOKEN: Final = re.compile(r"oncebox_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class Identity:
    """The scope of a key: a principal of a tenant."""

    tenant: str
    principal: str

    def __str__(self) -> str:
        return f"{self.tenant}/{self.principal}"


class NotActingError(ValueError):
    """Nobody is named to act for; the message says what to send."""


class NotPermittedError(ValueError):
    """The token may not act for the one that is named."""


@dataclass(frozen=True, slots=True)
class Caller:
    """What a token stands for: a principal, or a delegate of some tenants."""

    token_id: str
    own: Identity
    delegate: bool
    tenants: Collection[str]

    def acting_for(self, named: str | None) -> Identity:
        """The principal this request is for; raises `NotActingError` or `NotPermittedError`."""
        if named is None:
            if self.delegate:
                raise NotActingError("is required from a delegate: name the principal as tenant/principal")
            return self.own
        identity = parse(named)
        permitted = identity.tenant in self.tenants if self.delegate else identity == self.own
        if not permitted:
            raise NotPermittedError(f"this token may not act for {named}")
        return identity


def parse(written: str) -> Identity:
    """`tenant/principal`; raises `NotActingError`."""
    tenant, slash, principal = written.partition("/")
    if not slash or not NAME.fullmatch(tenant) or not NAME.fullmatch(principal):
        raise NotActingError("must be written tenant/principal")
    return Identity(tenant, principal)


def mint_token() -> tuple[str, str, bytes]:
    """A new token: its public id, the token itself (shown once), and what is stored of it."""
    token_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    return token_id, f"oncebox_{token_id}_{secret}", secret_hash(secret)


def split_token(token: str) -> tuple[str, str] | None:
    """The id and the secret in a token, or none when it has not the form of one."""
    match = _TOKEN.fullmatch(token)
    return (match[1], match[2]) if match else None


def secret_hash(secret: str) -> bytes:
    """What is stored of a token: 32 bytes. The secret is random, so no slow hash is needed."""
    return hashlib.sha256(secret.encode("ascii")).digest()


def matches(secret: str, stored: bytes) -> bool:
    """Whether `stored` was made from `secret`, in constant time."""
    return hmac.compare_digest(secret_hash(secret), stored)
