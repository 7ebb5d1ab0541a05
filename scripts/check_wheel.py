"""Build the wheel and look into it: every package with all its files, and nothing else.

The migrations, templates and py.typed files travel inside the packages; one that is left out shows only
on somebody else's machine.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("models", "outbox", "destinations", "worker", "notes", "operate")
# A package that carries its tables' migrations, so that `oncebox migrate up` works from a wheel.
WITH_MIGRATIONS = ("models/oncebox_models", "notes/oncebox_notes")


def build(folder: Path) -> Path:
    """The path of the project's wheel, freshly built into ``folder``."""
    command = [Path(sys.executable).with_name("uv"), "build", "--wheel", "--quiet", "--out-dir", folder, ROOT]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def expected_files() -> set[str]:
    """The files of all packages, as the wheel names them."""
    found: set[str] = set()
    for folder in FOLDERS:
        for file in (ROOT / folder / f"oncebox_{folder}").rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                found.add(file.relative_to(ROOT / folder).as_posix())
    return found


def faults(wheel: Path) -> list[str]:
    """What is wrong with the wheel, in words."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    packed = {name for name in names if ".dist-info/" not in name}
    information = {name.partition(".dist-info/")[2] for name in names if ".dist-info/" in name}
    expected = expected_files()
    found = [f"missing: {name}" for name in sorted(expected - packed)]
    found += [f"does not belong there: {name}" for name in sorted(packed - expected)]
    found += [
        f"missing in .dist-info: {name}"
        for name in ("entry_points.txt", "licenses/LICENSE")
        if name not in information
    ]
    for folder in FOLDERS:
        if f"oncebox_{folder}/py.typed" not in packed:
            found.append(f"oncebox_{folder} has no py.typed: type checkers would ignore its types")
    for package in WITH_MIGRATIONS:
        name = Path(package).name
        if not any(
            path.startswith(f"{name}/migrations/versions/") and path.endswith(".py") for path in packed
        ):
            found.append(f"{name} has no migrations")
    return found


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        found = faults(wheel)
    for fault in found:
        print(f"{wheel.name}: {fault}", file=sys.stderr)
    if not found:
        print(f"{wheel.name}: all packages are whole")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
