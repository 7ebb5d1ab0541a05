"""What it means when no whole answer came: the client's trace decides, the exception only gives the word."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from socket import gaierror
from typing import Final, Literal, cast

import httpx2

from oncebox_destinations.reasons import Reason

_CONNECTING: Final = "connection.connect_tcp."
_TLS: Final = "connection.start_tls."

Phase = Literal["waiting", "connecting", "tls", "sent", "answering"]


@dataclass(frozen=True, slots=True)
class Failure:
    """No whole answer. `began`: the client had begun to send, so the receiver may have got the request."""

    began: bool
    reason: Reason


class Oversized(Exception):
    """The answer is larger than we read."""


class Progress:
    """How far a request got, from the client's trace events. Passed to it as the `trace` extension."""

    def __init__(self) -> None:
        self.phase: Phase = "waiting"

    @property
    def began(self) -> bool:
        """Whether the client started to send. Noted before the first byte, so none need have left yet."""
        return self.phase in ("sent", "answering")

    async def __call__(self, event: str, info: Mapping[str, object]) -> None:
        self.note(event)

    def note(self, event: str) -> None:
        """Take in one trace event. A request that began never goes back, whatever comes later."""
        if self.began:
            if event.endswith(".receive_response_headers.complete"):
                self.phase = "answering"
        elif event.startswith(_CONNECTING):
            self.phase = "connecting"
        elif event.startswith(_TLS):
            self.phase = "tls"
        else:
            # Whatever we do not know counts as sending.
            self.phase = "sent"


def failure(progress: Progress, error: Exception) -> Failure:
    """What an exception means, given how far the request got. The trace decides; the rest is wording."""
    if progress.began:
        return Failure(True, _reason_after_sending(progress, error))
    reason = _reason_before_sending(progress, error)
    # An exception that belongs to a later phase than the trace has seen: believe the worse of the two.
    return Failure(reason is Reason.BROKEN_CONNECTION, reason)


def _reason_before_sending(progress: Progress, error: Exception) -> Reason:
    match error:
        case httpx2.PoolTimeout():
            return Reason.POOL_FULL
        case httpx2.ConnectTimeout():
            return Reason.TLS if progress.phase == "tls" else Reason.CONNECT_TIMEOUT
        case httpx2.ConnectError():
            return Reason.TLS if progress.phase == "tls" else _connect_reason(error)
        case httpx2.TransportError() | Oversized():
            return Reason.BROKEN_CONNECTION
        case TimeoutError():
            return _reason_of_deadline(progress)
        case _:
            return Reason.TLS if progress.phase == "tls" else Reason.CONNECT_FAILED


def _reason_of_deadline(progress: Progress) -> Reason:
    match progress.phase:
        case "waiting":
            return Reason.POOL_FULL
        case "tls":
            return Reason.TLS
        case "connecting" | "sent" | "answering":
            return Reason.CONNECT_TIMEOUT


def _reason_after_sending(progress: Progress, error: Exception) -> Reason:
    answering = progress.phase == "answering"
    match error:
        case TimeoutError() | httpx2.TimeoutException():
            return Reason.TIMEOUT
        case Oversized():
            return Reason.OVERSIZED
        case httpx2.ReadError() | httpx2.WriteError():
            return Reason.TRUNCATED if answering else Reason.RESET
        case httpx2.RemoteProtocolError():
            return _protocol_reason(error)
        case _:
            return Reason.BROKEN_CONNECTION


def _protocol_reason(error: Exception) -> Reason:
    # httpx2 and h11 have one exception for all of these, so only their text tells them apart.
    said = str(error)
    if said.startswith("Server disconnected"):
        return Reason.DISCONNECT
    return Reason.TRUNCATED if said.startswith("peer closed connection") else Reason.GARBAGE


def _connect_reason(error: Exception) -> Reason:
    causes = list(_causes(error))
    if any(isinstance(cause, gaierror) for cause in causes):
        return Reason.DNS
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return Reason.CONNECT_REFUSED
    return Reason.CONNECT_FAILED


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it: by cause, by wrapping (httpx2 clears causes on the way), in groups."""
    yield error
    wrapped = [argument for argument in error.args if isinstance(argument, BaseException)]
    if isinstance(error, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", error)  # isinstance cannot say what a group holds
        wrapped.extend(group.exceptions)
    for inner in (error.__cause__, *wrapped):
        if inner is not None:
            yield from _causes(inner)
