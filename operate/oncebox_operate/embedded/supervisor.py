"""Run one server, and end it when the process that wanted it is gone, whichever way it went.

A program of its own, run by path with ``python -I -S``: it imports nothing but the standard library,
and it outlives its owner by as long as the server needs to stop cleanly.

    supervisor.py OWNER_PID STOP_SIGNAL GRACE_SECONDS REMOVE_FOLDER|- COMMAND...

Standard input is the owner's hand: a line with a signal number is passed on to the server, end of
file asks for a stop. Standard output gets one line, the server's process id. Standard error, and all
that the server prints, is the log. The exit status is the server's (128 + n when signal n ended it).
"""

import os
import select
import signal
import subprocess
import sys
import time

# A forked child of the owner may hold the pipe open after the owner died: then only this poll tells.
OWNER_POLL_SECONDS = 0.25
CONTROL = 0


def main(arguments: list[str]) -> int:
    owner, stop_signal, grace, remove, *command = arguments
    wake = _wake_on_signals()
    if os.getppid() != int(owner):
        return 1
    try:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno())
    except OSError as error:
        print(f"cannot run {command[0]}: {error}", file=sys.stderr)
        return 127
    os.write(1, f"{server.pid}\n".encode())
    try:
        _obey_until_stop(server, int(owner), wake)
        _stop(server, int(stop_signal), float(grace), wake)
    finally:
        if remove != "-":
            _remove_folder(remove)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def _wake_on_signals() -> int:
    """Turn the end of the server and requests to stop into bytes on a pipe that ``select`` can watch."""
    wake, write = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _noted)
    return wake


def _noted(_number: int, _frame: object) -> None:
    """The wake-up pipe has the signal's number: a handler must only exist."""


def _obey_until_stop(server: "subprocess.Popen[bytes]", owner: int, wake: int) -> None:
    """Return when the server has ended, or when it is to be stopped."""
    while server.poll() is None and os.getppid() == owner:
        ready, _, _ = select.select([CONTROL, wake], [], [], OWNER_POLL_SECONDS)
        if wake in ready and any(number != signal.SIGCHLD for number in os.read(wake, 64)):
            return
        if CONTROL in ready:
            lines = os.read(CONTROL, 4096)
            if not lines:
                return
            for line in lines.split():
                server.send_signal(int(line))


def _stop(server: "subprocess.Popen[bytes]", stop_signal: int, grace: float, wake: int) -> None:
    """Ask, then insist: the polite signal, SIGQUIT after the grace, SIGKILL five seconds later."""
    for number, seconds in ((stop_signal, grace), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
        if server.poll() is None:
            server.send_signal(number)
        limit = time.monotonic() + seconds
        while server.poll() is None and (left := limit - time.monotonic()) > 0:
            if select.select([wake], [], [], left)[0]:
                os.read(wake, 64)
    server.wait()


def _remove_folder(folder: str) -> None:
    try:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
    except OSError as error:
        print(f"cannot remove {folder}: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
