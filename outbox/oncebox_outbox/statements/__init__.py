"""Every SQL statement of the outbox, by name: the one home of its SQL.

Each transition is one guarded statement on the database's clock. It locks the entry first, sets in id order.
Zero rows means that somebody else was first: counted, not an error.
"""

from oncebox_outbox.statements.claiming import CLAIM, DISPATCH, UNDISPATCH
from oncebox_outbox.statements.enqueuing import ADMISSION, CANCEL, ENQUEUE, EXISTING, LOCK_ORDERING_KEYS
from oncebox_outbox.statements.examining import CLOCK, HAS_REVISION, IN_REVIEW, REVISION, ROLES, SERVER, STUCK
from oncebox_outbox.statements.keeping import (
    CAPABILITIES,
    PRUNABLE,
    PRUNE_CALLS,
    PRUNE_LOCK,
    PRUNE_OPERATIONS,
    PRUNE_UNLOCK,
    RECEIVERS,
    REGISTER_DESTINATION,
    SEE_CAPABILITIES,
)
from oncebox_outbox.statements.naming import NAMES
from oncebox_outbox.statements.prompting import RECONCILE, RETRY
from oncebox_outbox.statements.reading import (
    DESTINATIONS,
    FIND,
    LAG,
    LEDGER,
    LIST_ALL,
    LIST_OPEN,
    LIST_SETTLED,
    ORPHANS,
    TIMELINE,
    VIOLATIONS,
)
from oncebox_outbox.statements.settling import PARK_POISON, SETTLE, SETTLE_UNSENT

__all__ = [
    "ADMISSION",
    "CANCEL",
    "CAPABILITIES",
    "CLAIM",
    "CLOCK",
    "DESTINATIONS",
    "DISPATCH",
    "ENQUEUE",
    "EXISTING",
    "FIND",
    "HAS_REVISION",
    "IN_REVIEW",
    "LAG",
    "LEDGER",
    "LIST_ALL",
    "LIST_OPEN",
    "LIST_SETTLED",
    "LOCK_ORDERING_KEYS",
    "NAMES",
    "ORPHANS",
    "PARK_POISON",
    "PRUNABLE",
    "PRUNE_CALLS",
    "PRUNE_LOCK",
    "PRUNE_OPERATIONS",
    "PRUNE_UNLOCK",
    "RECEIVERS",
    "RECONCILE",
    "REGISTER_DESTINATION",
    "RETRY",
    "REVISION",
    "ROLES",
    "SEE_CAPABILITIES",
    "SERVER",
    "SETTLE",
    "SETTLE_UNSENT",
    "STUCK",
    "TIMELINE",
    "UNDISPATCH",
    "VIOLATIONS",
]
