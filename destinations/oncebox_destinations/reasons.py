"""The stable words that say why an answer is what it is, where no problem code of the receiver says it."""

from enum import StrEnum


class Reason(StrEnum):
    """One word for logs, tables and people. Beside these: problem codes, and `http_NNN` for a bare status."""

    # Receipts and definite states.
    CREATED = "created"
    REPLAYED = "replayed"
    COMPLETED = "completed"
    SEALED = "sealed"
    IN_PROGRESS = "in_progress"
    NOT_FOUND = "not_found"
    OTHER_HASH = "other_hash"

    # The call never began.
    CONNECT_REFUSED = "connect_refused"
    CONNECT_FAILED = "connect_failed"
    CONNECT_TIMEOUT = "connect_timeout"
    DNS = "dns"
    TLS = "tls"
    POOL_FULL = "pool_full"
    EARLIER_PART_FAILED = "earlier_part_failed"
    """The operations of a call went out in parts, and one before this one ended the call."""

    # The call began and no whole answer came.
    TIMEOUT = "timeout"
    DISCONNECT = "disconnect"
    RESET = "reset"
    TRUNCATED = "truncated"
    GARBAGE = "garbage"
    OVERSIZED = "oversized"
    BROKEN_CONNECTION = "broken_connection"

    # A whole answer that does not say what became of the operation.
    MISSING_ITEM = "missing_item"
    DOUBLED_ITEM = "doubled_item"
    MALFORMED_ITEM = "malformed_item"
    MALFORMED_RECEIPT = "malformed_receipt"
    FOREIGN_RECEIPT = "foreign_receipt"

    # A whole request was turned away that carried more than one operation.
    BATCH_TOO_LARGE = "batch_too_large"
    BATCH_REFUSED = "batch_refused"
