"""A private copy of the working tree: faults go into the copy, never into the tree that people work in."""

import compileall
import os
import py_compile
import shutil
import subprocess
import tomllib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.proof.mutations.catalogue import Mutation

# Settings of ours that somebody's shell has would reach the tests, and pytest's own would reach a second pytest.
_NOT_OURS: Final = ("ONCEBOX_", "PYTEST_", "MUTATION_", "PYTHON", "CI")


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy. `folders` are the ones that hold the import packages, relative to it."""

    root: Path
    folders: tuple[str, ...]

    @property
    def packages(self) -> tuple[str, ...]:
        """The names of the import packages."""
        return tuple(
            sorted(
                package.parent.name
                for folder in self.folders
                for package in (self.root / folder).glob("*/__init__.py")
            )
        )

    def environment(self, database_url: str) -> Mapping[str, str]:
        """For processes that use the copy: its packages come before the installed ones, for children, too."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_OURS)}
        return {
            **kept,
            "PYTHONPATH": os.pathsep.join(str(self.root / folder) for folder in self.folders),
            "PYTHONDONTWRITEBYTECODE": "1",
            "ONCEBOX_TEST_DATABASE_URL": database_url,
        }

    @contextmanager
    def mutated(self, mutation: Mutation, loaded: Path) -> Generator[None]:
        """The copy with the fault in it. Each changed file leaves a file in `loaded` when Python runs it."""
        originals = {file: (self.root / file).read_bytes() for file in mutation.files}
        texts = {file: original.decode() for file, original in originals.items()}
        for edit in mutation.edits:
            texts[edit.file] = edit.applied(texts[edit.file])
        loaded.mkdir()
        try:
            for number, (file, text) in enumerate(texts.items()):
                witness = f"__import__('pathlib').Path({str(loaded / str(number))!r}).touch()"
                (self.root / file).write_text(f"{text}\n{witness}\n", encoding="utf-8")
            yield
        finally:
            for file, original in originals.items():
                (self.root / file).write_bytes(original)


def not_loaded(mutation: Mutation, loaded: Path) -> list[str]:
    """The changed files that no process has run: of those the tests say nothing."""
    return [file for number, file in enumerate(mutation.files) if not (loaded / str(number)).exists()]


def copy_of(tree: Path, target: Path) -> Copy:
    """Copy what git knows or would add, as it is on disk now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=tree,
        check=True,
        capture_output=True,
    ).stdout.decode()
    for name in filter(None, listed.split("\0")):
        source = tree / name
        # Deleted, but not yet told to git.
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    project = tomllib.loads((target / "pyproject.toml").read_text(encoding="utf-8"))
    copy = Copy(target, tuple(project["tool"]["hatch"]["build"]["dev-mode-dirs"]))
    for folder in copy.folders:
        # Compared by content: two edits within the same second, of the same length, are no surprise.
        checked = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(target / folder, quiet=1, invalidation_mode=checked)
    return copy
