"""The sentences people and agents read. The first words decide; nothing claims more than is proven."""

from collections.abc import Mapping
from typing import assert_never

from oncebox_models.outcomes import Receipt
from oncebox_models.states import Reason, State, Wanted


def say(
    state: State,
    operation_id: str,
    reason: str | None,
    receipt: Receipt | None,
    problem: Mapping[str, object] | None,
    wanted: Wanted | None,
) -> str:
    """One sentence on an operation. `reason`, `receipt`, `problem` and `wanted` as in `OperationStatus`."""
    match state:
        case State.SAVED:
            return _saved(operation_id, receipt)
        case State.PENDING:
            return _pending(operation_id, reason, wanted)
        case State.SENDING:
            given_up = _given_up(operation_id, reason, problem, wanted)
            return given_up or _sending(operation_id, reason)
        case State.RETRYING:
            given_up = _given_up(operation_id, reason, problem, wanted)
            return (
                given_up
                or f"NOT CONFIRMED YET: {operation_id} was turned away and will be sent again{_last(reason)}."
            )
        case State.UNKNOWN:
            return _unknown(operation_id, reason, problem, wanted)
        case State.REFUSED:
            return f"REFUSED: {operation_id} will never be saved under this id: {_refusal(reason, problem)}"
        case State.NOT_SAVED:
            return f"NOT SAVED: {operation_id} will never be saved: {_ending(reason)}. If it is still wanted, enqueue it under a new operation_id."
        case State.NEEDS_REVIEW:
            return _needs_review(operation_id, reason)
        case _:
            assert_never(state)


def _saved(operation_id: str, receipt: Receipt | None) -> str:
    if receipt is None:
        raise ValueError(f"operation {operation_id} is saved without a receipt, which no row can say")
    note = receipt.note
    return f"Saved: {operation_id} is note {note.get('id')} version {note.get('version')} in folder {note.get('folder')!r} at {note.get('location')}."


def _last(reason: str | None) -> str:
    return f" (last try: {reason})" if reason else ""


def _pending(operation_id: str, reason: str | None, wanted: Wanted | None) -> str:
    if wanted is Wanted.ABANDON:
        return f"NOT SENT YET: {operation_id} is being given up ({_ending(reason)}); that is not written down yet."
    if reason == Reason.RECEIVER_NEVER_SEEN:
        return (
            f"NOT SENT YET: {operation_id} is committed; no worker has reached its receiver yet."
            " Is a worker running, and the receiver up?"
        )
    return f"NOT SENT YET: {operation_id} is committed and waits to be delivered{_last(reason)}."


def _sending(operation_id: str, reason: str | None) -> str:
    return f"NOT CONFIRMED YET: {operation_id} is being sent{_last(reason)}; no answer yet."


def _given_up(
    operation_id: str, reason: str | None, problem: Mapping[str, object] | None, wanted: Wanted | None
) -> str | None:
    """The sentence while only a seal is wanted any more; None when it is to be delivered."""
    if wanted is Wanted.REFUSE:
        return f"NOT CONFIRMED YET: the receiver refused {operation_id} ({_refusal(reason, problem)}) This is being made final."
    if wanted is Wanted.ABANDON:
        return f"NOT CONFIRMED YET: {operation_id} is being given up ({_ending(reason)}); the receiver has not confirmed that yet."
    return None


def _unknown(
    operation_id: str, reason: str | None, problem: Mapping[str, object] | None, wanted: Wanted | None
) -> str:
    last, closing = "", "and the receiver is asked to close its key. Do not save it under another id."
    match wanted:
        case Wanted.ABANDON:
            doing = f"it is being given up ({_ending(reason)}), {closing}"
        case Wanted.REFUSE:
            doing = f"a later call was refused ({_refusal(reason, problem)}), {closing}"
        case Wanted.DELIVER | None:
            last = _last(reason)
            doing = "the receiver is asked before anything is sent again, under the same key. Do not save it under another id."
        case _:
            assert_never(wanted)
    return f"OUTCOME UNKNOWN: {operation_id} may or may not be saved{last}; {doing}"


def _refusal(reason: str | None, problem: Mapping[str, object] | None) -> str:
    """The receiver's own detail if it gave one, with the folders that are open to the caller."""
    if reason == Reason.ARGUMENT_CONFLICT:
        return "the receiver holds this key for other arguments. Enqueue the edit under a new operation_id."
    told = problem or {}
    detail = str(told.get("detail") or reason or "no reason was given").rstrip(".")
    folders = told.get("permitted_folders")
    if isinstance(folders, list):
        listed = ", ".join(str(folder) for folder in folders) or "none"  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] (JSON)
        detail = f"{detail}. Folders you may write to: {listed}"
    code = f"{reason}: " if reason else ""
    return f"{code}{detail}. Correct it and enqueue under a new operation_id."


def _ending(reason: str | None) -> str:
    match reason:
        case Reason.CANCELLED:
            return "it was cancelled"
        case Reason.EXPIRED:
            return "its deadline passed"
        case Reason.BUDGET_SPENT:
            return "too many calls stayed without an answer"
        case "sealed_elsewhere":
            return "its key was closed by someone else with the same rights"
        case _:
            return reason or "no reason was given"


def _needs_review(operation_id: str, reason: str | None) -> str:
    match reason:
        case Reason.ACCESS_LOST:
            why = "the receiver does not accept our token; it is tried again from time to time. An operator must renew it"
        case Reason.POISON:
            why = "the workers that took it ended without an answer; it is set aside. An operator must look at it"
        case _:
            why = reason or "no machine can tell"
    return f"OUTCOME UNKNOWN: {operation_id} needs review: {why}. It may or may not be saved."
