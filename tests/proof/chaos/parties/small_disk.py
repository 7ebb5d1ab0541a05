"""A file system that can be full: a small one in memory, mounted for the run where that is allowed."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Final, Self

_STEPS: Final = (8 << 20, 1 << 20, 64 << 10, 4 << 10)


class SmallDisk:
    """`fill` it until nothing fits, `free` it again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    @classmethod
    @contextlib.contextmanager
    def mounted(cls, folder: Path, megabytes: int) -> Generator[Self | None]:
        """Mounted at `folder`, which is made; None where this user may not mount."""
        folder.mkdir()
        if os.geteuid() != 0 or shutil.which("mount") is None or not _mount(folder, megabytes):
            yield None
            return
        try:
            yield cls(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=False, capture_output=True)

    def fill(self) -> None:
        """Take all that is left. What others give back meanwhile is taken the next time."""
        with self._filler.open("ab") as filler:
            at = filler.seek(0, os.SEEK_END)
            for step in _STEPS:
                while True:
                    try:
                        os.posix_fallocate(filler.fileno(), at, step)
                    except OSError:
                        break
                    at += step

    def free(self) -> None:
        """Give everything back."""
        self._filler.unlink(missing_ok=True)


def _mount(folder: Path, megabytes: int) -> bool:
    options = f"size={megabytes}m,mode=0755"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "oncebox-chaos", folder], check=False, capture_output=True
    )
    return done.returncode == 0
