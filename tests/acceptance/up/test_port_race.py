"""Two installations that choose the note service's port at the same moment."""

import os
import socket
from contextlib import ExitStack
from pathlib import Path

from oncebox_operate.up.installation import Installation
from oncebox_operate.up.plan import Plan


class Rival:
    """Takes the port that was just chosen, before the note service has bound it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.installation: Installation | None = None
        self.taken: list[int] = []

    def starting(self, part: str) -> None:
        if part == "note service" and not self.taken:
            port = self._chosen()
            self._stack.enter_context(socket.create_server(("127.0.0.1", port)))
            self.taken.append(port)

    def _chosen(self) -> int:
        assert self.installation is not None
        assert self.installation.notes is not None
        environment = Path(f"/proc/{self.installation.notes.pid}/environ").read_bytes().split(b"\0")
        return int(next(one for one in environment if one.startswith(b"ONCEBOX_NOTES_PORT=")).split(b"=")[1])

    def ready(self, part: str, seconds: float, detail: str) -> None: ...
    def said(self, message: str) -> None: ...
    def stopping(self, part: str) -> None: ...
    def stopped(self, part: str, seconds: float, detail: str) -> None: ...


def test_a_port_that_another_installation_took_first_is_gone_around(tmp_path: Path) -> None:
    with ExitStack() as stack:
        rival = Rival(stack)
        variables = {name: value for name, value in os.environ.items() if not name.startswith("ONCEBOX_")}
        installation = Installation(
            Plan(data=tmp_path / "data", workers=1, environment={**variables, "HOME": str(tmp_path)}), rival
        )
        rival.installation = installation
        stack.callback(installation.stop, lambda: False)
        places = installation.start()
        assert rival.taken
        assert not places.notes_url.endswith(f":{rival.taken[0]}")
        assert installation.notes is not None
        assert installation.notes.is_ready()
        installation.tend()
