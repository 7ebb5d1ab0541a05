"""The data folder of an installation: ours alone while we run; what is in it stays."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from oncebox_operate.embedded.folder import DataFolder
from oncebox_operate.up import state_file

_LOGS: Final = "logs"
_TOKEN: Final = "worker-token"
_QUEUES: Final = "queue-prefix"


def default_place(start: Path, environment: Mapping[str, str]) -> Path:
    """`.oncebox` in the working folder; in the user's state where nothing can be made there."""
    here = start / state_file.FOLDER
    user_folder = state_file.user_state_folder(environment)
    if user_folder is None or here.exists() or os.access(start, os.W_OK | os.X_OK):
        return here
    return user_folder / "data"


class InstallationFolder:
    """Raises FolderInUse (by which process) and EmbeddedError. Close it when nothing of us runs any more."""

    def __init__(self, path: Path) -> None:
        self._folder = DataFolder(path, what="Oncebox")
        self.path = self._folder.path
        self.lock = self._folder.lock
        if self._folder.created and os.geteuid() == 0:
            # PostgreSQL may have to run as another user, who must get through to its own folder.
            self.path.chmod(0o711)
        self.logs = self.path / _LOGS
        self.logs.mkdir(mode=0o700, exist_ok=True)
        # What the last run said of itself is no longer true, and ours is not yet.
        state_file.forget(self.path)
        # Databases, passwords and logs do not belong into anybody's commits.
        self._folder.write(".gitignore", "*\n")

    def close(self) -> None:
        """Others may use it."""
        self._folder.close()

    def log(self, name: str) -> Path:
        """Where a process logs to."""
        return self.logs / f"{name}.log"

    def token(self) -> str:
        """What was kept of the worker's token; empty when nothing was."""
        return self._read(_TOKEN)

    def keep_token(self, text: str) -> None:
        """Keep the worker's token, readable by us alone."""
        self._folder.write(_TOKEN, text)

    def queue_prefix(self) -> str:
        """Begins the names of our queues at a broker that others may use, too; the same for as long as the folder exists."""
        known = self._read(_QUEUES)
        if not known:
            known = f"oncebox-{secrets.token_hex(4)}"
            self._folder.write(_QUEUES, known)
        return known

    def _read(self, name: str) -> str:
        file = self.path / name
        return file.read_text(encoding="utf-8").strip() if file.exists() else ""
