"""Every step that the sender can take.

A worker that never acts again is a dead one, so there is no step for dying. A worker that lost its lease to another is
the stopped one (a zombie): it may wake up with its answer. The packets of calls that are over stay on their way.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from oncebox_models.outcomes import Outcome
from oncebox_models.states import DEFINITE_STATES, CallKind, Wanted
from oncebox_outbox.rules import Again
from tests.proof.model import rows
from tests.proof.model.arrows import CANCEL, CLAIM, LAPSE, PARK_POISON, SETTLE_UNSENT
from tests.proof.model.normal_form import normal, stopped
from tests.proof.model.receiver import Sender
from tests.proof.model.rows import HASH, Unstorable
from tests.proof.model.sender import Call, Protocol, Side
from tests.proof.model.wire import KEY, Reply

CLOCK, RECONCILE = "clock", "reconcile"
"""Steps that never change the state that people see."""
_OF_A_BAD_DAY: Final = (Reply.LOST, Reply.UNAUTHENTICATED, Reply.TURNED_AWAY, Reply.FOREIGN, Reply.BUSY)


@dataclass(frozen=True, slots=True)
class Move:
    """One step of the sender's. left: packets of calls that ended by it. became: where a call went, for the receiver.

    cause: the step in one word, for the arrow. busy: only while a transaction of this key is open.
    """

    told: str
    after: Side
    cause: str
    left: frozenset[Sender]
    became: Mapping[Sender, Sender]
    broken: tuple[str, ...] = ()
    healthy: bool = False
    busy: bool = False


def moves(protocol: Protocol, side: Side) -> Iterator[Move]:
    """Every step of the sender's from here."""
    row, policy = side.row, protocol.policy
    if row.final in DEFINITE_STATES:
        return
    # Without the rules that bound them these numbers grow for ever: beyond the bound there is nothing new to see.
    within = row.unanswered <= policy.budget and row.claims <= policy.poison_claims
    if row.final is None and within:
        yield from _claims(protocol, side)
    if row.final is None:
        yield from _by_statement(protocol, side)
        yield from _by_clock(protocol, side)
    if side.held is not None:
        yield from _answers(protocol, side, side.held, Sender.HELD)
    if side.stale is not None and not protocol.calm:
        yield from _answers(protocol, side, side.stale, Sender.STALE)


def replied(protocol: Protocol, side: Side, to: Sender, reply: Reply) -> Side | None:
    """An answer has come back to a call that waits for one; None when it changes nothing."""
    call = side.held if to is Sender.HELD else side.stale
    if call is None or call.reply is reply:
        return None
    if to is Sender.HELD:
        return replace(side, held=replace(call, reply=reply))
    after = replace(side, stale=stopped(protocol, replace(call, reply=reply)))
    return None if after == side else after


def _claims(protocol: Protocol, side: Side) -> Iterator[Move]:
    claimed = protocol.claim(side.row, Sender.HELD, protocol.policy, late=side.late)
    if claimed is None:
        return
    became: dict[Sender, Sender] = {}
    stale = side.stale
    overtaken = None if side.held is None else stopped(protocol, side.held)
    if overtaken is not None:
        # Two workers: of those that were stopped one is remembered, and the other has ended.
        if stale is not None:
            became[Sender.STALE] = _over(stale, verdict=False)
        became[Sender.HELD] = Sender.STALE
        stale = overtaken
    broken = _wrong_calls(side, claimed)
    verb = _VERBS[claimed.kind]
    for began in (True, False):
        call = Call(claimed.kind, claimed.entry, began)
        told = f"a worker claims it {verb}" if began else f"a worker claims it {verb}, and cannot connect"
        after = replace(side, row=claimed.row, held=call, stale=stale)
        yield _moved(protocol, side, told, CLAIM, after, became, broken, healthy=began)


_VERBS: Final = {
    CallKind.SEND: "and sends",
    CallKind.STATUS: "and asks",
    CallKind.SEAL: "and asks for the seal",
}


def _wrong_calls(side: Side, claimed: rows.ClaimedRow) -> tuple[str, ...]:
    given_up = side.row.wanted is not Wanted.DELIVER
    if claimed.kind is CallKind.SEND:
        return ("given_up_is_never_sent",) * given_up + ("late_is_never_sent",) * side.late
    return ("unsent_is_settled_at_home",) * (side.row.attempts == 0)


def _answers(protocol: Protocol, side: Side, call: Call, who: Sender) -> Iterator[Move]:
    quiet = call.reply is None or not protocol.calm
    replies: list[Reply] = [] if call.reply is None else [call.reply]
    if call.began:
        replies += _OF_A_BAD_DAY if quiet else [Reply.LOST]
    else:
        replies += [Reply.NEVER_BEGAN]
    for reply in replies:
        yield from _answered(protocol, side, call, who, reply)


def _answered(protocol: Protocol, side: Side, call: Call, who: Sender, reply: Reply) -> Iterator[Move]:
    told = protocol.answer(call.kind, reply)
    answer = protocol.checked(told, KEY, HASH)
    step = protocol.next_step(call.entry, call.kind, answer, protocol.policy, lambda: 0.0)
    broken: list[str] = []
    try:
        row = protocol.settle(side.row, who, answer, step)
    except Unstorable:
        row, broken = None, ["storable"]
    if row is None:
        if not call.lapsed:
            broken.append("who_holds_the_lease_is_heard")
        if answer.outcome is Outcome.RECEIPT:
            broken.append("a_receipt_is_believed")
        if not broken:
            return  # a stopped worker is told that it was overtaken: as if it had never woken up
        row = side.row
    verdict = isinstance(step, Again) and step.verdict
    became = {who: _over(call, verdict=verdict)}
    after = replace(side, row=row, **{"held" if who is Sender.HELD else "stale": None})
    if row.call is None and side.held is not None and who is Sender.STALE:
        # The stopped worker's answer took the lease away from the one who holds it.
        after = replace(after, held=None, stale=side.held)
        became[Sender.HELD] = Sender.STALE
    whose = "the worker" if who is Sender.HELD else "the stopped worker"
    kind = (
        ""
        if call.kind is CallKind.SEND
        else f" to its {'question' if call.kind is CallKind.STATUS else 'seal'}"
    )
    moved = partial(
        _moved, protocol, side, cause=str(answer.outcome), broken=tuple(broken), busy=reply is Reply.BUSY
    )
    healthy = reply not in _OF_A_BAD_DAY and not call.lapsed
    yield moved(f"{whose} writes down {reply}{kind}", after=after, became=became, healthy=healthy)
    if who is Sender.HELD and not protocol.guarded:
        # The guard makes the second time touch no row.
        twice = replace(after, stale=replace(call, reply=reply, lapsed=True))
        yield moved(
            f"{whose} writes down {reply}{kind}, does not learn of it, and will do so again",
            after=twice,
            became={who: Sender.STALE}
            | ({Sender.STALE: _over(side.stale, verdict=False)} if side.stale else {}),
        )


def _by_statement(protocol: Protocol, side: Side) -> Iterator[Move]:
    row = side.row
    steps = (
        ("it is cancelled", CANCEL, False, protocol.cancel(row)),
        ("what was never sent is settled", SETTLE_UNSENT, True, protocol.settle_unsent(row, late=side.late)),
        ("it is parked as poison", PARK_POISON, True, protocol.park_poison(row, protocol.policy)),
        ("a person has it reconciled", RECONCILE, False, protocol.reconcile(row)),
    )
    for told, cause, healthy, after in steps:
        if after is not None and after != row:
            yield _moved(protocol, side, told, cause, replace(side, row=after), {}, healthy=healthy)


def _by_clock(protocol: Protocol, side: Side) -> Iterator[Move]:
    lapsed = rows.lapse(side.row)
    if lapsed is not None:
        held = side.held and replace(side.held, lapsed=True)
        yield _moved(protocol, side, "the lease runs out", LAPSE, replace(side, row=lapsed, held=held), {})
    told = "the sender's clock steps back" if side.late else "the deadline passes at the sender"
    yield _moved(protocol, side, told, CLOCK, replace(side, late=not side.late), {})


def _moved(
    protocol: Protocol,
    side: Side,
    told: str,
    cause: str,
    after: Side,
    became: Mapping[Sender, Sender],
    broken: tuple[str, ...] = (),
    *,
    healthy: bool = False,
    busy: bool = False,
) -> Move:
    became = dict(became)
    row = after.row
    if row.final in DEFINITE_STATES:
        for who, call in ((Sender.HELD, after.held), (Sender.STALE, after.stale)):
            if call is not None:
                became[who] = _over(call, verdict=False)
        after = Side(row)
    if side.row.wanted is not Wanted.DELIVER and row.wanted is Wanted.DELIVER and row.final is None:
        broken += ("given_up_is_never_sent",)
    if row.unanswered > protocol.policy.budget:
        broken += ("calls_without_a_verdict_are_bounded",)
    if row.claims > protocol.policy.poison_claims:
        broken += ("poison_is_bounded",)
    if row.attempts == 0 and row.call is not None:
        broken += ("a_call_has_an_attempt",)
    left = frozenset(_LEFT) & frozenset(became.values())
    return Move(told, normal(protocol, after), cause, left, became, broken, healthy=healthy, busy=busy)


_LEFT: Final = (Sender.ANSWERED, Sender.UNANSWERED, Sender.SEALER)


def _over(call: Call, *, verdict: bool) -> Sender:
    """Under what name the packets of a call that is over go on; `STALE` for those that matter no more."""
    if call.sends:
        return Sender.ANSWERED if verdict else Sender.UNANSWERED
    return Sender.SEALER if call.began and call.kind is CallKind.SEAL else Sender.STALE
