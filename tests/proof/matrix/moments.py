"""What a row of the matrix is: a point in one seam, and the moment at which it is struck there."""

from dataclasses import dataclass
from enum import StrEnum


class Seam(StrEnum):
    """Where the product meets another party. Crash points sit in these, and nowhere in the product's modules."""

    SENDER_SQL = "sender-sql"
    """SQLAlchemy: cursor events, and the commit of a caller's transaction."""
    HTTP = "http"
    """The HTTP client's transport."""
    BROKER = "broker"
    """AMQP methods: publish and confirm, look, get, ack."""
    RECEIVER_SQL = "receiver-sql"
    """psycopg's `execute`: the note service is another party, and speaks to its database without SQLAlchemy."""


class Moment(StrEnum):
    """When a point is struck."""

    BEFORE = "before"
    """SIGKILL before anything of it leaves the process."""
    AFTER = "after"
    """SIGKILL when its whole reply is there and nobody has acted on it."""
    LOST = "reply lost"
    """It was executed, its reply never arrives, and the process goes on."""


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """One row: `point` is a name out of the code's own lists, or one of the few beside them (`points`)."""

    seam: Seam
    point: str
    moment: Moment

    @property
    def slug(self) -> str:
        """Names the row in keys, folders and files: letters, digits and dashes."""
        return f"{self.seam}-{self.point}-{self.moment}".lower().replace("_", "-").replace(" ", "-")
