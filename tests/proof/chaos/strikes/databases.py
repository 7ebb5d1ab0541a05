"""Faults of the two databases: killed with every child, paused, cut off, and once a full disk."""

import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from oncebox_operate.faults.http_proxy import Exchange
from oncebox_operate.faults.tcp_proxy import TcpProxy
from tests.proof.chaos import eyes
from tests.proof.chaos.hand import NOTHING, Blow, Hand
from tests.proof.chaos.parties.database import Database
from tests.proof.chaos.parties.small_disk import SmallDisk
from tests.proof.chaos.strikes.cutting import cut_off

_ANSWER_S: Final = 60.0
_BUSY_S: Final = 20.0
_FULL_S: Final = (1.0, 3.0)
AtWork = Callable[[Hand], AbstractContextManager[tuple[str, int] | None]]
"""Inside it operations are under way at a database: how, and how many. None: there are none."""


def kill_sender_database(hand: Hand) -> Blow:
    return _kill(hand, hand.installation.sender_database, _sender_at_work)


def pause_sender_database(hand: Hand) -> Blow:
    return _pause(hand, hand.installation.sender_database, _sender_at_work)


def cut_off_sender_database(hand: Hand) -> Blow:
    """From the agents, from relays and workers, or from all of them."""
    network = hand.installation.network
    agents, roles = network.agents_to_database, network.roles_to_database
    proxies: list[TcpProxy] = hand.chance.choice([[agents], [roles], [agents, roles]])
    return _cut_off(hand, proxies, _sender_at_work)


def kill_notes_database(hand: Hand) -> Blow:
    return _kill(hand, hand.installation.notes_database, _notes_at_work)


def pause_notes_database(hand: Hand) -> Blow:
    return _pause(hand, hand.installation.notes_database, _notes_at_work)


def cut_off_notes_database(hand: Hand) -> Blow:
    return _cut_off(hand, [hand.installation.network.notes_to_database], _notes_at_work)


def fill_notes_disk(hand: Hand) -> Blow:
    """The disk of the note service's database is full until its writers have been refused; then it has room again."""
    disk = hand.installation.small_disk
    if disk is None:
        return Blow(0, "not done: this user may not mount a file system", possible=False)
    with _notes_at_work(hand) as found:
        if found is None:
            return NOTHING
        before = hand.installation.network.workers_to_notes.exchanges[-1]
        disk.fill()
    try:
        answers = _until_refused(hand, disk, before)
        hand.pause(*_FULL_S)
    finally:
        disk.free()
    _be_up(hand.installation.notes_database)
    how, in_flight = found
    if not answers:
        return Blow(0, f"{how}; no writer was refused")
    return Blow(in_flight, f"{how}; writers were told {' and '.join(answers)}")


def _until_refused(hand: Hand, disk: SmallDisk, before: Exchange) -> list[str]:
    """What writers were told by answers of 500 and more; empty when there were none."""
    limit = time.monotonic() + _BUSY_S
    while time.monotonic() < limit:
        # What the server gave back meanwhile is taken, too.
        disk.fill()
        exchanges = list(hand.installation.network.workers_to_notes.exchanges)
        new = exchanges[exchanges.index(before) + 1 :] if before in exchanges else exchanges
        if told := sorted({one for exchange in new for one in refusals_in(exchange)}):
            return told
        time.sleep(0.1)
    return []


def refusals_in(exchange: Exchange) -> Iterator[str]:
    """Status and code of each item that was answered with 500 or more."""
    document = json.loads(exchange.reply_body or b"{}")
    for item in document.get("items", [document]):
        problem = item.get("problem", item)
        if problem.get("status", 0) >= 500:
            yield f"{problem['status']} {problem.get('code')}"


def _kill(hand: Hand, database: Database, at_work: AtWork) -> Blow:
    with at_work(hand) as found:
        if found is None:
            return NOTHING
        database.kill()
    hand.pause(0.0, 1.5)
    _be_up(database)
    return Blow(found[1], found[0])


def _pause(hand: Hand, database: Database, at_work: AtWork) -> Blow:
    with at_work(hand) as found:
        if found is None:
            return NOTHING
        database.pause()
    try:
        seconds = hand.pause(1.0, 5.0)
    finally:
        database.resume()
    return Blow(found[1], f"{found[0]}, {seconds:.1f} s")


def _cut_off(hand: Hand, proxies: list[TcpProxy], at_work: AtWork) -> Blow:
    with at_work(hand) as found:
        if found is None:
            return NOTHING
        how = cut_off(hand, proxies)
    return NOTHING if how is None else Blow(found[1], f"{found[0]}, {how}")


def _be_up(database: Database) -> None:
    if database.has_ended():
        database.restart()
    if not database.wait_until_it_answers(_ANSWER_S):
        raise TimeoutError(f"the {database.name} database does not answer after {_ANSWER_S:g} s")


@contextmanager
def _sender_at_work(hand: Hand) -> Generator[tuple[str, int] | None]:
    """Some agent is in a transaction, or some operation is handed over or leased: at any point, or with an answer of the
    note service on its way, which then meets a database that is away."""
    if hand.chance.random() < 0.5:
        in_flight = hand.soon(lambda: _in_flight_at_sender(hand))
        yield ("at any point", in_flight) if in_flight else None
        return
    with hand.moment("request held", "reply held") as found:
        in_flight = _in_flight_at_sender(hand)
        yield (found[0], in_flight) if found and in_flight else None


def _in_flight_at_sender(hand: Hand) -> int:
    return hand.in_flight() + hand.sender.number(eyes.ENQUEUING)


@contextmanager
def _notes_at_work(hand: Hand) -> Generator[tuple[str, int] | None]:
    """Some operations are under way at the note service, or just answered."""
    with hand.moment() as found:
        in_flight = hand.sender.number(eyes.LEASED)
        yield (found[0], in_flight) if found and in_flight else None
