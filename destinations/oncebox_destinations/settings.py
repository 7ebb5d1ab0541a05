"""What a client of the note service needs to know. Built by entry points; nothing here reads the environment."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr

_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


class WrongSettings(ValueError):
    """Settings that cannot work; the message names each wrong one and what to do."""


@dataclass(frozen=True, slots=True)
class NoteServiceSettings:
    """Where the note service is and how long to wait for it. Times in seconds, sizes in bytes.

    call_timeout_s: the total time of one call, from waiting for a connection to the last byte of the answer.
    connect_timeout_s: the longest wait for a free connection, and again for a new one.
    max_connections: connections of one client at a time.
    keepalive_s: how long an idle connection is kept. Shorter than the server's own (uvicorn: 5), since a call
        that meets a closing connection is an unknown outcome.
    response_bytes: the largest answer that is read.
    """

    base_url: str
    token: SecretStr
    call_timeout_s: float = 10.0
    connect_timeout_s: float = 3.0
    max_connections: int = 20
    keepalive_s: float = 2.0
    response_bytes: int = 16 * 1024 * 1024

    def __post_init__(self) -> None:
        faults = [*self._url_faults(), *self._token_faults(), *self._number_faults()]
        if faults:
            raise WrongSettings("; ".join(faults))

    def url(self, path: str) -> str:
        """The URL of a path that begins with a slash."""
        return self.base_url.rstrip("/") + path

    def _url_faults(self) -> list[str]:
        try:
            parts = urlsplit(self.base_url)
            usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            return [f"base_url {self.base_url!r} is not a URL; use one such as http://127.0.0.1:8320"]
        # A user:password@ in a URL is a secret that would be printed with it.
        if parts.username is not None or parts.password is not None:
            return ["base_url holds a user name or password; leave it out, the token is the only credential"]
        if not usable or parts.query or parts.fragment:
            return [
                f"base_url {self.base_url!r} must be http:// or https:// with a host, no query or fragment"
            ]
        return []

    def _token_faults(self) -> list[str]:
        if _TOKEN.fullmatch(self.token.get_secret_value()):
            return []
        return ["token is blank or holds a space, a line break or a non-ASCII character; copy it again"]

    def _number_faults(self) -> list[str]:
        positive = {
            "call_timeout_s": self.call_timeout_s,
            "connect_timeout_s": self.connect_timeout_s,
            "keepalive_s": self.keepalive_s,
            "max_connections": self.max_connections,
            "response_bytes": self.response_bytes,
        }
        faults = [
            f"{name} is {value}; it must be more than 0" for name, value in positive.items() if not value > 0
        ]
        if not self.connect_timeout_s < self.call_timeout_s:
            faults.append(
                f"connect_timeout_s is {self.connect_timeout_s}; it must be below call_timeout_s,"
                f" which is {self.call_timeout_s}"
            )
        return faults
