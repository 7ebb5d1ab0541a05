"""The folder of one embedded server: made by us, locked while in use, with its password and its log."""

import contextlib
import fcntl
import os
import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path

from oncebox_operate.embedded.errors import EmbeddedError, FolderInUse

# A predecessor that was killed leaves its server a moment to stop cleanly.
PREDECESSOR_SECONDS = 20.0
POLL_SECONDS = 0.05


class DataFolder:
    """Ours alone from the moment it is made until it is closed; EmbeddedError when another process has it.

    ``lock``, the lock's descriptor, is passed on to the server's supervisor: after a kill -9 of this process the
    folder stays locked until the server has ended too. ``created``: the folder was not there before.
    """

    def __init__(self, path: Path, *, what: str) -> None:
        self.path = path.absolute()
        self._what = what
        try:
            self.created = not self.path.exists()
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EmbeddedError(
                f"the data of {what} cannot be kept in {self.path}: {error.strerror}; "
                "choose a folder that you may write to"
            ) from error
        try:
            self._lock()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Unlock it, as soon as the server's supervisor has ended too."""
        os.close(self.lock)

    def password(self) -> str:
        """The server's password, the same for as long as the folder exists; readable by us alone."""
        file = self.path / "password"
        if not file.exists():
            self.write("password", secrets.token_hex(24))
        return file.read_text(encoding="ascii").strip()

    def last_port(self) -> int | None:
        """The port of the last run: addresses that people noted down keep working if it is still free."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int((self.path / "port").read_text(encoding="ascii"))
        return None

    def write(self, name: str, text: str) -> Path:
        """Write a file whole or not at all, mode 0600."""
        file = self.path / name
        temporary = self.path / f"{name}.new"
        temporary.unlink(missing_ok=True)
        with open(temporary, "x", encoding="utf-8", opener=_open_private) as output:
            output.write(text)
            output.flush()
            # A password that a power failure takes while the cluster stays would lock everybody out.
            os.fsync(output.fileno())
        return temporary.replace(file)

    def _lock(self) -> None:
        if not _poll(self._try_lock, while_=self._holder_is_gone):
            raise FolderInUse(
                f"the data of {self._what} in {self.path} is in use by {self._holder()}: "
                "end that process, or choose another data folder"
            )
        os.ftruncate(self.lock, 0)
        os.pwrite(self.lock, f"{os.getpid()} {socket.gethostname()}".encode(), 0)

    def _try_lock(self) -> bool:
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _holder_is_gone(self) -> bool:
        pid, _, host = os.pread(self.lock, 512, 0).decode(errors="replace").partition(" ")
        return host in ("", socket.gethostname()) and not _is_running(pid)

    def _holder(self) -> str:
        pid, _, host = os.pread(self.lock, 512, 0).decode(errors="replace").partition(" ")
        where = "" if host in ("", socket.gethostname()) else f" on {host}"
        return f"process {pid or '(unknown)'}{where}"


def processes_in(folder: Path) -> list[int]:
    """Processes whose working folder this is: a postmaster and its children work in their cluster."""
    wanted = str(folder.resolve())
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if str((entry / "cwd").readlink()) == wanted:
                    found.append(int(entry.name))
    return sorted(found)


def wait_until_unused(folder: Path) -> list[int]:
    """Give a server that is stopping its time; the processes that still work in ``folder`` after it."""
    _poll(lambda: not processes_in(folder), while_=lambda: True)
    return processes_in(folder)


def _poll(check: Callable[[], bool], *, while_: Callable[[], bool]) -> bool:
    limit = time.monotonic() + PREDECESSOR_SECONDS
    while not check():
        if not while_() or time.monotonic() > limit:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _is_running(pid: str) -> bool:
    if not pid.isdecimal():
        return False
    try:
        state = Path("/proc", pid, "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
    except OSError:
        return False
    return state.split()[0] not in ("Z", "X")


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
