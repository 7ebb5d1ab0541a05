"""The network between the parties: a proxy for each pair, every one of which can fail by itself."""

from contextlib import ExitStack
from threading import Lock
from types import TracebackType
from typing import Final, Self

from oncebox_operate.faults.http_proxy import FaultProxy
from oncebox_operate.faults.tcp_proxy import TcpProxy

SENDS: Final = "POST /v1/notes:batch"
_REMEMBERED: Final = 500


class Network:
    """``with Network(...) as network``: each proxy is named by who uses it, and to where it leads."""

    def __init__(self, *, sender_database: str, notes_database: str, broker: str, notes: str) -> None:
        self.agents_to_database = TcpProxy(sender_database)
        self.roles_to_database = TcpProxy(sender_database)
        self.notes_to_database = TcpProxy(notes_database)
        self.workers_to_broker = TcpProxy(broker)
        self.relays_to_broker = TcpProxy(broker)
        self.workers_to_notes = FaultProxy(notes)
        self._stack = ExitStack()
        self._reserved = {id(proxy): Lock() for proxy in self.proxies}

    def __enter__(self) -> Self:
        for proxy in self.proxies:
            self._stack.enter_context(proxy)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def by_name(self) -> dict[str, TcpProxy]:
        return {
            "agents to database": self.agents_to_database,
            "roles to database": self.roles_to_database,
            "notes to database": self.notes_to_database,
            "workers to broker": self.workers_to_broker,
            "relays to broker": self.relays_to_broker,
            "workers to notes": self.workers_to_notes,
        }

    @property
    def proxies(self) -> list[TcpProxy]:
        return list(self.by_name.values())

    def reserved(self, proxy: TcpProxy) -> Lock:
        """Held by the fault that changes what gets through this proxy."""
        return self._reserved[id(proxy)]

    def heal(self) -> None:
        """Everything gets through again."""
        self.workers_to_notes.clear_rules()
        for proxy in self.proxies:
            proxy.pass_through()

    def forget(self) -> None:
        """The HTTP proxy remembers every request; a long run has no use for the old ones."""
        del self.workers_to_notes.exchanges[:-_REMEMBERED]
