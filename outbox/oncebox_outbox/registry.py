"""The destinations that operations may name, and what their receivers last said of themselves."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine

from oncebox_models.calls import Capabilities
from oncebox_outbox import statements
from oncebox_outbox.edge import database_errors


class OtherReceiver(Exception):
    """A destination and the receiver behind its address do not belong together.

    Another receiver answers than the one its operations were sent to, or one that has another destination already.
    """

    def __init__(self, name: str, seen: str, known: Mapping[str, str | None]) -> None:
        """`known`: the receivers of this destination and of the one that `seen` belongs to, by their names."""
        elsewhere = [other for other, receiver in known.items() if receiver == seen and other != name]
        if name not in known:
            message = f"destination {name!r} is not registered"
        elif elsewhere:
            message = (
                f"receiver {seen} answers at the address of destination {name!r}, but belongs to {elsewhere[0]!r}; "
                f"enqueue to {elsewhere[0]!r}: two names for one receiver would be two notes for one write"
            )
        else:
            message = (
                f"destination {name!r} belongs to receiver {known[name]}, but {seen} answers at its address; "
                "point it back, or register the other receiver under a name of its own"
            )
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a receiver last said, and when. None when it was never seen."""

    capabilities: Capabilities
    at: datetime


def register(engine: Engine, name: str, base_url: str, receiver_class: str) -> None:
    """Make a destination known, or set its address and class."""
    with engine.connect() as connection, database_errors():
        connection.execute(
            statements.REGISTER_DESTINATION, {"name": name, "base_url": base_url, "class": receiver_class}
        )


def see(engine: Engine, name: str, capabilities: Capabilities) -> None:
    """Remember what the receiver says of itself. Raises OtherReceiver when the two do not belong together."""
    told = {
        "batch_items": capabilities.batch_items,
        "batch_bytes": capabilities.batch_bytes,
        "admission_window_s": capabilities.admission_window_s,
        "request_limit_s": capabilities.request_limit_s,
        "tombstone_retention_s": capabilities.tombstone_retention_s,
        "server_time": capabilities.server_time.isoformat(),
    }
    parameters = {"name": name, "receiver": capabilities.receiver, "capabilities": json.dumps(told)}
    with engine.connect() as connection, database_errors():
        if connection.execute(statements.SEE_CAPABILITIES, parameters).first() is None:
            rows = connection.execute(statements.RECEIVERS, {"name": name, "receiver": capabilities.receiver})
            raise OtherReceiver(name, capabilities.receiver, {row.name: row.receiver for row in rows})


def last_seen(engine: Engine, name: str) -> Seen | None:
    """The capabilities last seen; None when the receiver was never reached."""
    with engine.connect() as connection, database_errors():
        row = connection.execute(statements.CAPABILITIES, {"name": name}).first()
    if row is None or row.capabilities is None:
        return None
    told = row.capabilities
    return Seen(
        Capabilities(
            receiver=row.receiver,
            batch_items=told["batch_items"],
            batch_bytes=told["batch_bytes"],
            admission_window_s=told["admission_window_s"],
            request_limit_s=told["request_limit_s"],
            tombstone_retention_s=told["tombstone_retention_s"],
            server_time=datetime.fromisoformat(told["server_time"]),
        ),
        row.capabilities_seen_at,
    )
