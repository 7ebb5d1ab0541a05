"""Where a running `oncebox up` says what it is, so that a command in another terminal needs no variable.

The file lies in the data folder, mode 0600: it holds the worker's token and the databases' password. It is left there
when `up` ends; whoever reads it looks whether that process still runs. Needs nothing but the standard library, since
every command looks.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, cast

FOLDER: Final = ".oncebox"
"""Name of the data folder of a working folder."""
DATA_VARIABLE: Final = "ONCEBOX_DATA"
_FILE: Final = "up.json"
_POINTER: Final = "up-data"
"""In the user's state folder: the data folder of the `up` that was started last."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the parts of an installation are, and as whom its workers act."""

    notes_url: str
    database_url: str
    notes_database_url: str
    broker_url: str
    queue_prefix: str
    token: str
    tenant: str
    principal: str
    folder: str
    data: str

    def variables(self) -> dict[str, str]:
        """The variables that other commands would need."""
        return {
            "ONCEBOX_DATABASE_URL": self.database_url,
            "ONCEBOX_NOTES_DATABASE_URL": self.notes_database_url,
            "ONCEBOX_BROKER_URL": self.broker_url,
            "ONCEBOX_QUEUE_PREFIX": self.queue_prefix,
            "ONCEBOX_NOTES_URL": self.notes_url,
            "ONCEBOX_TOKEN": self.token,
        }


@dataclass(frozen=True, slots=True)
class RunningUp:
    """An `up` that runs."""

    pid: int
    places: Places


@dataclass(frozen=True, slots=True)
class EndedUp:
    """An `up` that has ended, however it did."""

    pid: int
    data: Path


def write(data: Path, places: Places, user_folder: Path | None) -> None:
    """Say that this process is an `up` with its data in `data`. An OSError in the user's folder is not one of ours."""
    told = {"pid": os.getpid(), "started": _started(os.getpid()), "places": asdict(places)}
    _write_private(data / _FILE, json.dumps(told, indent=1))
    if user_folder is not None:
        try:
            user_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_private(user_folder / _POINTER, str(data))
        except OSError:
            return


def forget(data: Path) -> None:
    """While it starts there is nothing to be told."""
    (data / _FILE).unlink(missing_ok=True)


def find(start: Path, environment: Mapping[str, str]) -> RunningUp | EndedUp | None:
    """The `up` that a command started in the folder `start` belongs to.

    The one with its data in `ONCEBOX_DATA`, else in the nearest `.oncebox` upwards, else the one that this user
    started last. None when nothing was ever started there.
    """
    data = data_folder(start, environment)
    return None if data is None else _read(data)


def data_folder(start: Path, environment: Mapping[str, str]) -> Path | None:
    """The folder that `find` looks into."""
    if given := environment.get(DATA_VARIABLE):
        return start / given
    if near := nearest(start):
        return near
    user_folder = user_state_folder(environment)
    if user_folder is None:
        return None
    try:
        return Path((user_folder / _POINTER).read_text(encoding="utf-8"))
    except OSError:
        return None


def nearest(start: Path) -> Path | None:
    """The nearest `.oncebox` of this user, upwards from `start`."""
    for folder in (start, *start.parents):
        if _is_ours(folder / FOLDER):
            return folder / FOLDER
    return None


def _is_ours(folder: Path) -> bool:
    # In a folder that everybody may write into, another user's must not tell our commands where to write.
    try:
        return folder.is_dir() and folder.stat().st_uid == os.geteuid()
    except OSError:
        return False


def user_state_folder(environment: Mapping[str, str]) -> Path | None:
    """Where programs of this user keep their state; None for a user without a home."""
    if given := environment.get("XDG_STATE_HOME"):
        return Path(given) / "oncebox"
    if home := environment.get("HOME"):
        return Path(home) / ".local" / "state" / "oncebox"
    return None


def _read(data: Path) -> RunningUp | EndedUp | None:
    try:
        told = cast("dict[str, object]", json.loads((data / _FILE).read_text(encoding="utf-8")))
        # What we wrote ourselves, or a version before us: then it says nothing to us.
        places = Places(**cast("dict[str, str]", told["places"]))
        pid, started = cast("int", told["pid"]), told["started"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # A process id is used again; together with its start it is not.
    return RunningUp(pid, places) if started == _started(pid) else EndedUp(pid, data)


def _started(pid: int) -> int | None:
    """When a process began, in ticks since the machine did; None when there is none."""
    try:
        fields = (
            Path("/proc", str(pid), "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        )
    except OSError:
        return None
    state, started = fields.split()[0], fields.split()[19]
    return None if state in ("Z", "X") else int(started)


def _write_private(file: Path, text: str) -> None:
    temporary = file.with_name(f"{file.name}.new")
    temporary.unlink(missing_ok=True)
    with open(temporary, "x", encoding="utf-8", opener=_open_private) as output:
        output.write(text)
    temporary.replace(file)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
