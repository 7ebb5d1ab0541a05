"""TCP ports on loopback."""

import socket

from oncebox_operate.embedded.errors import EmbeddedError

LOOPBACK = "127.0.0.1"
PORT_RACES_TRIED = 3
"""How often a server is started on a port that we chose ourselves: two installations may choose at the same time."""


def choose_port(wanted: int | None, preferred: int | None) -> int:
    """The wanted port, or an error when it is taken; else the preferred one if free; else any free one.

    Another process may take it before the server listens: whoever did not ask for a port tries again.
    """
    if wanted is not None:
        if not is_free(wanted):
            raise EmbeddedError(
                f"port {wanted} on {LOOPBACK} is taken: end what listens there, give another port, "
                "or give none to have a free one chosen"
            )
        return wanted
    if preferred is not None and is_free(preferred):
        return preferred
    with socket.create_server((LOOPBACK, 0)) as listener:
        return int(listener.getsockname()[1])


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    try:
        with socket.create_server((LOOPBACK, port)):
            return True
    except OSError:
        return False
