"""What `retry`, `cancel` and `reconcile` say that they did, and what they exit with: pure."""

from typing import assert_never

from oncebox_models.states import CallKind, State
from oncebox_operate import exit_codes
from oncebox_operate.exit_codes import ExitCode
from oncebox_outbox.cancelling import Cancelled
from oncebox_outbox.prompting import Prompted, Reconciled, Retried
from oncebox_outbox.status import OperationStatus


def resend(known: OperationStatus) -> bool:
    """Whether it can be wanted again: it never will be saved under its own id."""
    return known.state in (State.REFUSED, State.NOT_SAVED)


def live(known: OperationStatus) -> bool:
    """Whether it moves on by itself. What needs review does while its access may come back."""
    return known.settled_at is None


def waits_for(retried: Retried) -> str | None:
    """What keeps a due call waiting: `receiver`, `ordering_key`, or nothing."""
    if retried.did is not Prompted.DUE:
        return None
    if not retried.receiver_seen:
        return "receiver"
    return "ordering_key" if retried.behind else None


def of_retry(known: OperationStatus, retried: Retried) -> str:
    """What a retry did."""
    match retried.did:
        case Prompted.UNDER_WAY:
            return "A call is under way; it is left alone."
        case Prompted.DUE:
            return f"{_next(retried.next_call)} is due now.{_waiting(retried)}"
        case Prompted.SETTLED:
            return _settled(known)
        case _:
            assert_never(retried.did)


def _next(call: CallKind | None) -> str:
    match call:
        case CallKind.STATUS:
            return "The question to the receiver, before anything is sent again,"
        case CallKind.SEAL:
            return "The seal"
        case _:
            return "The next call"


def _waiting(retried: Retried) -> str:
    match waits_for(retried):
        case "receiver":
            return " It waits until a worker has reached the receiver once: oncebox worker"
        case "ordering_key":
            return " It waits for an earlier operation of its ordering key."
        case _:
            return ""


def _settled(known: OperationStatus) -> str:
    match known.state:
        case State.SAVED:
            return "There is nothing to try again."
        case State.REFUSED:
            return "Sending it again is a new operation. Add what has to be corrected (such as --folder) to:"
        case State.NOT_SAVED:
            return "Sending it again is a new operation:"
        case _:
            return f"It is set aside, and nothing is tried until a person has decided. See: oncebox show {known.id}"


def retry_code(known: OperationStatus) -> ExitCode:
    """0 for what goes on and what is saved; else what `status` exits with."""
    return ExitCode.OK if live(known) else exit_codes.of_state(known.state)


def of_cancel(known: OperationStatus, did: Cancelled) -> str:
    """What a cancel did. `known` may be later than that: what a wait brought."""
    match did:
        case Cancelled.SETTLED:
            return "Cancelled: nothing was ever sent."
        case Cancelled.SEALING if known.state is State.SAVED:
            return "The cancel came too late: it had been saved."
        case Cancelled.SEALING if known.definite:
            return "Cancelled: the receiver closed its key."
        case Cancelled.SEALING:
            return "The receiver is asked to close its key. Until it answers, it may still prove to be saved."
        case Cancelled.NOTHING if known.state is State.SAVED:
            return "It is too late to cancel it; nothing was done."
        case Cancelled.NOTHING if not live(known):
            return "It was settled before; nothing was done."
        case Cancelled.NOTHING:
            return "It was given up before; the receiver is asked to close its key."
        case _:
            assert_never(did)


def cancel_code(known: OperationStatus, *, waited: bool) -> ExitCode:
    """0 when it never will be saved, or is being given up; 4 when it is saved; after a wait, 5 or 7 in doubt."""
    match known.state:
        case State.SAVED:
            return ExitCode.CONFLICT
        case State.REFUSED | State.NOT_SAVED:
            return ExitCode.OK
        case _ if waited or not live(known):
            return exit_codes.of_waited(known.state)
        case _:
            return ExitCode.OK


def of_reconcile(done: Reconciled, known: OperationStatus | None, narrowed: str) -> str:
    """What a reconcile did."""
    where = f" ({narrowed})" if narrowed else ""
    if known is not None:
        return "The receiver is asked now." if done.asked else _not_asked(known)
    if not done.asked:
        return f"Nothing to ask{where}: no operation is of unknown outcome, or a worker is asking already."
    lost = f", {done.access_lost:,} of them waiting for our access to come back" if done.access_lost else ""
    return f"The receiver is asked now about {done.asked:,} operation{'s' if done.asked > 1 else ''}{lost}{where}."


def _not_asked(known: OperationStatus) -> str:
    match known.state:
        case State.SENDING:
            return "A call is under way; its answer is waited for."
        case State.PENDING | State.RETRYING:
            return f"There is nothing to ask. To have it tried now: oncebox retry {known.id}"
        case State.UNKNOWN | State.NEEDS_REVIEW if live(known):
            return "Somebody is asking at this moment."
        case State.UNKNOWN | State.NEEDS_REVIEW:
            return f"It is set aside, and no machine can tell. See: oncebox show {known.id}"
        case State.SAVED | State.REFUSED | State.NOT_SAVED:
            return "It is settled; there is nothing to ask."
        case _:
            assert_never(known.state)
