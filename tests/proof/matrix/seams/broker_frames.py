"""The seam at the broker: AMQP's methods as they leave and as they arrive, below every channel of ours and Celery's."""

import socket
from typing import Any, Final

from amqp import spec
from amqp.abstract_channel import AbstractChannel

from tests.proof.matrix.moments import Seam
from tests.proof.matrix.seams.trap import Trap

PUBLISH: Final = "publish"
WAITING: Final = "waiting"
DEAD: Final = "dead"
ACK: Final = "ack"
_PASSIVE: Final = 2
"""Position of `passive` among the arguments of a declare."""


def install(trap: Trap) -> None:
    """Watch every channel of this process."""
    channels: Any = AbstractChannel
    leave, arrive = channels.send_method, channels.dispatch_method
    looking: set[int] = set()

    def send_method(
        channel: Any, sig: Any, format: Any = None, args: Any = None, *more: Any, **named: Any
    ) -> Any:
        if sig == spec.Queue.Declare:
            # Only those that look: the others make the queue.
            (looking.add if args[_PASSIVE] else looking.discard)(id(channel))
        name = _request(sig, id(channel) in looking)
        trap.before(Seam.BROKER, name)
        if name == ACK and trap.lost(Seam.BROKER, name, lambda: _cut(channel)):
            raise _gone()
        done = leave(channel, sig, format, args, *more, **named)
        if name == ACK:
            # Nothing answers an ack: what is written is as far as it goes.
            trap.after(Seam.BROKER, name)
        return done

    def dispatch_method(channel: Any, sig: Any, payload: Any, content: Any) -> Any:
        name = _reply(sig, id(channel) in looking)
        trap.after(Seam.BROKER, name)
        if trap.lost(Seam.BROKER, name, lambda: _cut(channel)):
            raise _gone()
        return arrive(channel, sig, payload, content)

    channels.send_method = send_method
    channels.dispatch_method = dispatch_method


def _request(sig: Any, looking: bool) -> str:
    match sig:
        case spec.Basic.Publish:
            return PUBLISH
        case spec.Queue.Declare:
            return WAITING if looking else ""
        case spec.Basic.Get:
            return DEAD
        case spec.Basic.Ack:
            return ACK
        case _:
            return ""


def _reply(sig: Any, looking: bool) -> str:
    match sig:
        case spec.Basic.Ack:
            return PUBLISH
        case spec.Queue.DeclareOk:
            return WAITING if looking else ""
        case spec.Basic.GetOk:
            return DEAD
        case _:
            return ""


def _cut(channel: Any) -> None:
    channel.connection.transport.sock.shutdown(socket.SHUT_RDWR)


def _gone() -> ConnectionResetError:
    """What a client is told when the broker, or the way to it, is gone."""
    return ConnectionResetError("connection reset by peer")
