"""A transactional outbox: commit the wish to write together with your own data; it ends with exactly one note.

outbox = Outbox(tenant="demo", principal="researcher", destination="notes")
with Session(engine) as session, session.begin():
    why = Intent(run="run-42", step="summarise", purpose="keep finding 7")
    save = outbox.save_note(session, why, operation_id="note-7", folder="drafts", title="Finding 7", text="...")
print(outbox.wait(engine, save.operation_id, timeout=30).say)
"""

from oncebox_models.arguments import Fault, Kind
from oncebox_models.outcomes import Receipt
from oncebox_models.states import State
from oncebox_outbox.enqueue import Enqueued
from oncebox_outbox.errors import (
    ArgumentConflict,
    InvalidOperation,
    OperationNotFound,
    OutboxError,
    RetryTransaction,
    SchemaMissing,
    UnknownDestination,
)
from oncebox_outbox.intents import Intent
from oncebox_outbox.outbox import Outbox
from oncebox_outbox.status import OperationStatus
from oncebox_outbox.writes import Write

__all__ = [
    "ArgumentConflict",
    "Enqueued",
    "Fault",
    "Intent",
    "InvalidOperation",
    "Kind",
    "OperationNotFound",
    "OperationStatus",
    "Outbox",
    "OutboxError",
    "Receipt",
    "RetryTransaction",
    "SchemaMissing",
    "State",
    "UnknownDestination",
    "Write",
]
