"""What came through an HTTP proxy, and how a rule says which of it is meant."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase


@dataclass(slots=True)
class Exchange:
    """A request that reached the proxy, and how far it got."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    forwarded: int = 0  # how often the upstream got it
    status: int | None = None  # what the upstream answered, seen by the client or not
    reply_body: bytes | None = None
    replied: bool = False  # the client was sent the upstream's reply, whole
    copies: list[int] = field(default_factory=list[int])  # what the upstream answered to further copies
    raw: bytes = field(default=b"", repr=False)


# "POST /v1/notes:batch", "GET /v1/operations/*" (the query is not looked at), a predicate, or every request.
Match = str | Callable[[Exchange], bool] | None


def matches(match: Match, exchange: Exchange) -> bool:
    """The exchange is one of those that are meant."""
    if match is None:
        return True
    if isinstance(match, str):
        return fnmatchcase(f"{exchange.method} {exchange.path.partition('?')[0]}", match)
    return match(exchange)
