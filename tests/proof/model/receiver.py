"""The receiver: one record of the key, a grant, a clock, and at most one transaction that writes.

The order of its checks is that of the wire: key lock, record, grant under its lock, the clock, the write. A
transaction is open from its key lock on, and ends with the write or with a crash. Its clock is one of three times:
before the deadline, after it, and so long after it that a tombstone may go. A transaction is shorter than that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum

from oncebox_models.states import CallKind
from tests.proof.model.wire import Reply


class Record(StrEnum):
    """What the receiver holds under the key."""

    NONE = "none"
    OURS = "completed"
    OTHERS = "completed, other arguments"
    SEALED = "sealed"


class Sender(StrEnum):
    """Whose packet it is. `ANSWERED` and `UNANSWERED`: sends of calls that are over, and their copies."""

    HELD = "held"
    STALE = "stale"
    ANSWERED = "answered"
    UNANSWERED = "unanswered"
    SEALER = "sealer"


class Clock(IntEnum):
    """The receiver's clock, as far as it decides."""

    BEFORE = 0
    AFTER = 1
    LONG_AFTER = 2


@dataclass(frozen=True, slots=True)
class Receiver:
    """promised: "sealed" has been said, or could have been. writing: whose transaction is open.

    Only where a rule is missing: waiting: whose second transaction is open (the key lock); half: the record is in and
    the note is not (their one transaction); fresh: a note was made under another key (the one key).
    """

    record: Record = Record.NONE
    notes: int = 0
    promised: bool = False
    grant: bool = True
    clock: Clock = Clock.BEFORE
    writing: Sender | None = None
    waiting: Sender | None = None
    half: bool = False
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class ReceiverRules:
    """What the receiver keeps to. Each can be dropped."""

    one_record_a_key: bool = True
    note_with_its_record: bool = True
    key_lock: bool = True
    record_before_grant: bool = True
    grant_read_under_lock: bool = True
    deadline_checked: bool = True
    clock_after_lock: bool = True
    seal_leaves_a_tombstone: bool = True
    seal_reads_the_record: bool = True
    tombstones_outlive_packets: bool = True
    completed_records_stay: bool = True
    clock_steps_back_less_than_the_margin: bool = True


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that can happen at the receiver. healthy: it happens without anybody's doing."""

    told: str
    receiver: Receiver
    to: Sender | None = None
    reply: Reply | None = None
    broken: tuple[str, ...] = ()
    healthy: bool = False


def deliver(
    rules: ReceiverRules, receiver: Receiver, kind: CallKind, sender: Sender, *, fresh_key: bool = False
) -> Iterator[Effect]:
    """A packet arrives. `fresh_key`: a send under another key than the first (without the one key)."""
    match kind:
        case CallKind.SEND if fresh_key:
            yield _execute_under_a_fresh_key(rules, receiver, sender)
        case CallKind.SEND:
            yield from _begin(rules, receiver, sender)
        case CallKind.SEAL:
            yield from _seal(rules, receiver, sender)
        case _:
            yield from _status(receiver, sender)


def happen(rules: ReceiverRules, receiver: Receiver) -> Iterator[Effect]:
    """What happens at the receiver without a packet."""
    if receiver.writing is not None:
        yield _write(rules, receiver, receiver.writing)
        crashed = replace(receiver, writing=None, half=False)
        yield Effect("the receiver's transaction is rolled back by a crash", crashed)
    elif receiver.waiting is not None:
        yield _write_at_last(receiver, receiver.waiting)
    yield from _clock(rules, receiver)
    yield from _purge(rules, receiver)
    yield from _grants(rules, receiver)
    if receiver.record is Record.NONE and receiver.writing is None and receiver.clock is Clock.BEFORE:
        other = replace(receiver, record=Record.OTHERS)
        yield Effect("somebody else with these rights uses the key for other arguments", other)
        sealed = replace(receiver, record=Record.SEALED, promised=True)
        yield Effect("somebody else with these rights seals the key", sealed)


def _answer(told: str, receiver: Receiver, sender: Sender, reply: Reply) -> Effect:
    """An answer, with what is wrong about it."""
    broken: list[str] = []
    if (receiver.notes > 0) != (reply is Reply.RECEIPT) and reply not in (Reply.REFUSED, Reply.EXPIRED):
        broken.append("true_answers")
    if receiver.record is Record.OURS and reply is not Reply.RECEIPT:
        broken.append("owner_gets_the_receipt")
    return Effect(f"{told}: {reply}", receiver, sender, reply, tuple(broken), healthy=True)


_OF_RECORD = {
    Record.OURS: Reply.RECEIPT,
    Record.OTHERS: Reply.OTHER_ARGUMENTS,
    Record.SEALED: Reply.SEALED,
    Record.NONE: Reply.NOT_FOUND,
}


def _begin(rules: ReceiverRules, receiver: Receiver, sender: Sender) -> Iterator[Effect]:
    told = "the receiver gets the send of {0}"
    if not rules.record_before_grant and not receiver.grant:
        yield _answer(told, receiver, sender, Reply.REFUSED)
    elif receiver.record is not Record.NONE and rules.one_record_a_key:
        yield _answer(told, receiver, sender, _OF_RECORD[receiver.record])
    elif receiver.writing is not None and (rules.key_lock or receiver.waiting is not None):
        return  # 409 in progress: what the caller can make of it, it can always make of silence
    elif not receiver.grant:
        yield _answer(told, receiver, sender, Reply.REFUSED)
    elif receiver.writing is not None or not rules.clock_after_lock:
        # The clock is read now, and the write comes later.
        if _past(rules, receiver):
            yield _answer(told, receiver, sender, Reply.EXPIRED)
        else:
            field = "writing" if receiver.writing is None else "waiting"
            more = "" if receiver.writing is None else ", and it waits for the other"
            yield Effect(
                f"{told} and begins; it has read its clock{more}", replace(receiver, **{field: sender})
            )
    else:
        yield Effect(f"{told} and begins", replace(receiver, writing=sender), healthy=True)


def _execute_under_a_fresh_key(rules: ReceiverRules, receiver: Receiver, sender: Sender) -> Effect:
    told = "the receiver gets the send of {0}, under a key that it has not seen,"
    if receiver.fresh:
        return _answer("the receiver gets the send of {0} again", receiver, sender, Reply.RECEIPT)
    if not receiver.grant:
        return _answer(told, receiver, sender, Reply.REFUSED)
    if _past(rules, receiver):
        return _answer(told, receiver, sender, Reply.EXPIRED)
    return _answer(told, replace(receiver, notes=receiver.notes + 1, fresh=True), sender, Reply.RECEIPT)


def _past(rules: ReceiverRules, receiver: Receiver) -> bool:
    return rules.deadline_checked and receiver.clock is not Clock.BEFORE


def _write(rules: ReceiverRules, receiver: Receiver, sender: Sender) -> Effect:
    told = "the transaction of {0} ends"
    if receiver.half:
        noted = replace(receiver, writing=None, half=False, notes=receiver.notes + 1)
        return _answer(told, noted, sender, Reply.RECEIPT)
    if receiver.record is not Record.NONE and not rules.key_lock:
        # Its insert finds the record of whoever was first.
        return _answer(told, replace(receiver, writing=None), sender, _OF_RECORD[receiver.record])
    if rules.clock_after_lock and _past(rules, receiver):
        return _answer(told, replace(receiver, writing=None), sender, Reply.EXPIRED)
    if not rules.note_with_its_record:
        half = replace(receiver, record=Record.OURS, half=True)
        return Effect(
            "the transaction of {0} commits the record, and the note is to follow", half, healthy=True
        )
    done = replace(receiver, record=Record.OURS, notes=receiver.notes + 1, writing=None)
    return _after_write(told, done, sender)


def _write_at_last(receiver: Receiver, sender: Sender) -> Effect:
    """The second transaction, whose insert waited for the first: its clock was read before."""
    told = "the transaction of {0}, which waited, ends"
    if receiver.record is not Record.NONE:
        return _answer(told, replace(receiver, waiting=None), sender, _OF_RECORD[receiver.record])
    return _after_write(told, replace(receiver, record=Record.OURS, notes=1, waiting=None), sender)


def _after_write(told: str, done: Receiver, sender: Sender) -> Effect:
    answer = _answer(told, done, sender, Reply.RECEIPT)
    broken = answer.broken
    if done.clock is not Clock.BEFORE:
        broken += ("nothing_after_the_deadline",)
    if not done.grant:
        broken += ("revoked_is_revoked",)
    return replace(answer, broken=broken)


def _seal(rules: ReceiverRules, receiver: Receiver, sender: Sender) -> Iterator[Effect]:
    told = "the receiver gets the seal of {0}"
    if receiver.writing is not None and rules.key_lock:
        return  # it waits, then 409 in progress
    if receiver.record is Record.NONE:
        record = Record.SEALED if rules.seal_leaves_a_tombstone else Record.NONE
        yield _answer(told, replace(receiver, record=record, promised=True), sender, Reply.SEALED)
    elif rules.seal_reads_the_record:
        yield _answer(told, receiver, sender, _OF_RECORD[receiver.record])
    else:
        yield _answer(told, replace(receiver, promised=True), sender, Reply.SEALED)


def _status(receiver: Receiver, sender: Sender) -> Iterator[Effect]:
    if receiver.writing is None or receiver.record is not Record.NONE:
        yield _answer("the receiver gets the question of {0}", receiver, sender, _OF_RECORD[receiver.record])


def _clock(rules: ReceiverRules, receiver: Receiver) -> Iterator[Effect]:
    if receiver.clock is Clock.BEFORE:
        yield Effect("the deadline passes at the receiver", replace(receiver, clock=Clock.AFTER))
        return
    if receiver.clock is Clock.AFTER and receiver.writing is None and receiver.waiting is None:
        yield Effect("days pass at the receiver", replace(receiver, clock=Clock.LONG_AFTER))
    # A step back is shorter than the margin of tombstones: after a purge it never reaches the deadline.
    purged = receiver.record is Record.NONE and (receiver.promised or receiver.notes > 0)
    back = Clock(receiver.clock - 1)
    if back is Clock.AFTER or not purged or not rules.clock_steps_back_less_than_the_margin:
        yield Effect("the receiver's clock steps back", replace(receiver, clock=back))


def _purge(rules: ReceiverRules, receiver: Receiver) -> Iterator[Effect]:
    due = receiver.clock is Clock.LONG_AFTER
    if receiver.record is Record.SEALED and (due or not rules.tombstones_outlive_packets):
        yield Effect("the tombstone is purged", replace(receiver, record=Record.NONE))
    if receiver.record is Record.OURS and due and not rules.completed_records_stay:
        yield Effect("the record of the note is purged", replace(receiver, record=Record.NONE))


def _grants(rules: ReceiverRules, receiver: Receiver) -> Iterator[Effect]:
    if not receiver.grant:
        yield Effect("the grant is given", replace(receiver, grant=True))
    elif receiver.writing is None or not rules.grant_read_under_lock:
        yield Effect("the grant is revoked", replace(receiver, grant=False))


def normal(rules: ReceiverRules, receiver: Receiver) -> Receiver:
    """The same receiver without what can no longer matter: a note answers for ever, whatever grant and clock are."""
    if rules == ReceiverRules() and receiver.record in (Record.OURS, Record.OTHERS):
        return replace(receiver, grant=True, clock=Clock.BEFORE)
    return receiver
