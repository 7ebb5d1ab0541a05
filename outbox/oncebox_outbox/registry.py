"""The destinations that operations may name, and what their receivers last said of themselves."""

import json
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine

from oncebox_models.calls import Capabilities
from oncebox_outbox import statements
from oncebox_outbox.edge import database_errors


class OtherReceiver(Exception):
    """Another receiver answers behind a destination's address than the one its operations were sent to."""

    def __init__(self, name: str, known: str | None, seen: str) -> None:
        super().__init__(
            f"destination {name!r} belongs to receiver {known}, but {seen} answers at its address; "
            "point it back, or register the other receiver under a name of its own"
        )


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
    """Remember what the receiver says of itself. Raises OtherReceiver when it is not the one known by that name."""
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
            known = connection.execute(statements.CAPABILITIES, {"name": name}).first()
            raise OtherReceiver(name, known.receiver if known else None, capabilities.receiver)


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
