"""TCP ports that stay free while nobody listens there."""

import contextlib
import random
import socket


def ports_below_those_of_clients(count: int) -> list[int]:
    """Ports on loopback that nobody has, below those that the system gives to clients: a party that is down for a
    while finds its own again."""
    with contextlib.ExitStack() as probes:
        found: list[int] = []
        while len(found) < count:
            port = random.randrange(20_000, 32_000)
            probe = probes.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
        return found
