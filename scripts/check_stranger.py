"""A stranger's program uses the core: with modules named like our folders, and without our extras.

The wheel goes into an environment that has the core's dependencies only. Importing ``oncebox_outbox``
there must neither meet the program's own ``models.py``, ``worker.py`` and ``agent.py`` nor need Celery,
an HTTP library or Alembic.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from check_wheel import ROOT, build

UV = Path(sys.executable).with_name("uv")
OWN_MODULES = ("agent", "destinations", "models", "notes", "operate", "outbox", "worker")
PROGRAM = f"""
import importlib.util
import sys

import oncebox_outbox

OWN = {OWN_MODULES}
FOREIGN = ("alembic", "celery", "fastapi", "httpx2", "kombu")

for name in OWN:
    module = __import__(name)
    assert module.WHOSE == "the stranger's", f"import {{name}} found {{module.__file__}}"
from oncebox_models import tables
assert "site-packages" in oncebox_outbox.__file__, oncebox_outbox.__file__
for name in FOREIGN:
    assert importlib.util.find_spec(name) is None, f"{{name}} is installed with the core"
    assert name not in sys.modules, f"import oncebox_outbox imports {{name}}"
print(f"oncebox_outbox imports {{len([name for name in sys.modules if name.startswith('oncebox_')])}} modules of ours")
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wheel = build(folder)
        python = _core_environment(folder / "venv", wheel)
        program = folder / "program"
        program.mkdir()
        for name in OWN_MODULES:
            (program / f"{name}.py").write_text('WHOSE = "the stranger\'s"\n', encoding="utf-8")
        (program / "main.py").write_text(PROGRAM, encoding="utf-8")
        done = subprocess.run([python, "-W", "error", "main.py"], cwd=program, check=False)
    return done.returncode


def _core_environment(venv: Path, wheel: Path) -> Path:
    """A Python with the locked core dependencies and our wheel."""
    requirements = venv.with_name("requirements.txt")
    python = venv / "bin" / "python"
    quiet = (UV, "--quiet")
    for command in (
        [*quiet, "venv", "--python", sys.executable, venv],
        [*quiet, "export", "--frozen", "--no-dev", "--no-emit-project", "--output-file", requirements],
        [*quiet, "pip", "install", "--python", python, "--no-deps", "--requirements", requirements],
        [*quiet, "pip", "install", "--python", python, "--no-deps", wheel],
        [*quiet, "pip", "check", "--python", python],
    ):
        subprocess.run(command, cwd=ROOT, check=True)
    return python


if __name__ == "__main__":
    sys.exit(main())
