"""A process that has imported every program once and forks them, so that a role starts in a tenth of a second.

python -m tests.proof.matrix.zygote FD    answers at the sequenced-packet socket FD, until it is closed

What it forks is a process like any other: its own session, its own environment and logs, the real entry point. It
forks before any thread exists. A victim gets its seams, and one armed point, before its program starts.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import uuid_utils

PACKET: Final = 200_000
"""Longest packet, in bytes: an environment goes through it."""
_DIE_WITH_PARENT: Final = 1
_MODULES: Final = (
    "celery.apps.worker",
    "celery.bin.worker",
    "celery.concurrency.thread",
    "httptools",
    "kombu.transport.pyamqp",
    "oncebox_notes.__main__",
    "oncebox_notes.migrating",
    "oncebox_notes.serving",
    "oncebox_worker.app",
    "oncebox_worker.main",
    "tests.proof.matrix.agent",
    "tests.proof.matrix.seams.broker_frames",
    "tests.proof.matrix.seams.http_calls",
    "tests.proof.matrix.seams.receiver_sql",
    "tests.proof.matrix.seams.sender_sql",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
)


@dataclass(frozen=True, slots=True)
class Order:
    """What to run: a program's name (`_run`), its arguments, all of its environment, and the file for its output.

    arm: the fields of `trap.Arm`; the packet then carries the victim's end of the control socket.
    """

    program: str
    arguments: list[str]
    environment: dict[str, str]
    log: str
    arm: dict[str, str | None] | None


def main(descriptor: int) -> None:
    """Import, say so, and fork on order."""
    _die_with_parent()
    _import()
    assert threading.active_count() == 1, threading.enumerate()
    gc.freeze()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    with socket.socket(fileno=descriptor) as orders:
        orders.send(b'{"ready": true}')
        while True:
            readable, _, _ = select.select([orders, woken], [], [])
            if woken in readable:
                os.read(woken, 1000)
                _tell_ends(orders)
            if orders in readable:
                packet, descriptors, _, _ = socket.recv_fds(orders, PACKET, 1)
                if not packet:
                    return
                order = Order(**json.loads(packet))
                pid = os.fork()
                if pid == 0:
                    orders.close()
                    _become(order, descriptors)
                for received in descriptors:
                    os.close(received)
                orders.send(json.dumps({"pid": pid}).encode())


def _tell_ends(orders: socket.socket) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            orders.send(json.dumps({"ended": pid, "code": os.waitstatus_to_exitcode(status)}).encode())


def _become(order: Order, descriptors: list[int]) -> NoReturn:
    """The forked child: never returns to the loop, whatever happens."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        _die_with_parent()
        # A copied random state would mint the same ids in two processes.
        uuid_utils.reseed_rng()
        os.environ.clear()
        os.environ.update(order.environment)
        _redirect(order.log)
        if order.arm is not None:
            _arm(order.arm, socket.socket(fileno=descriptors[0]))
        code = _run(order)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _run(order: Order) -> int:
    sys.argv = [order.program, *order.arguments]
    match order.program:
        case "oncebox":
            from oncebox_operate import running

            return running.run(order.arguments)
        case "oncebox_notes":
            from oncebox_notes.__main__ import main as run_notes

            return run_notes(order.arguments)
        case "agent":
            from tests.proof.matrix import agent

            return agent.run(order.arguments)
        case _:
            raise ValueError(f"no program {order.program}")


def _arm(fields: dict[str, str | None], control: socket.socket) -> None:
    from tests.proof.matrix.moments import Moment, Seam
    from tests.proof.matrix.seams import broker_frames, http_calls, receiver_sql, sender_sql
    from tests.proof.matrix.seams.trap import Arm, Trap

    gate = fields["gate"]
    arm = Arm(
        Seam(fields["seam"] or ""),
        fields["point"] or "",
        Moment(fields["moment"] or ""),
        Path(gate) if gate is not None else None,
    )
    trap = Trap(arm, control)
    for seam in (sender_sql, http_calls, broker_frames, receiver_sql):
        seam.install(trap)


def _redirect(log: str) -> None:
    """Standard output to LOG.out, which may be data, and the rest to LOG.err."""
    for descriptor, ending in ((1, "out"), (2, "err")):
        file = os.open(f"{log}.{ending}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, descriptor)
        os.close(file)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _import() -> None:
    from oncebox_operate import app

    app.build()
    for command in app.COMMANDS:
        importlib.import_module(f"oncebox_operate.commands.{command.module}")
    for name in _MODULES:
        importlib.import_module(name)


def _die_with_parent() -> None:
    prctl: Any = ctypes.CDLL(None, use_errno=True).prctl
    prctl(_DIE_WITH_PARENT, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]))
