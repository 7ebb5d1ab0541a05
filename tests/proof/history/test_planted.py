"""Every kind of lie is found and named, and only that kind: an honest story with one thing in it that is not so."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

import pytest

from oncebox_models.states import ARROWS, State
from tests.proof.history import story
from tests.proof.history.checker import RULES, check, name_of, tally
from tests.proof.history.statements import (
    AbsentSaid,
    CancelSaid,
    EnqueueSaid,
    ExitSaid,
    Key,
    LagSaid,
    ReceiverSaid,
    Said,
    Statement,
)
from tests.proof.history.story import (
    CANCELLED,
    DOUBTFUL,
    DROPPED,
    REFUSED,
    SAVED,
    TURNED,
    at,
    note,
    operation,
    receipt,
    state,
)
from tests.proof.history.truth import Ledger, Note, Operation

Story = tuple[list[Statement], Ledger]
Change = Callable[[Story], Story]

STRANGER: Final = Key("demo", "stranger", "saved")
SAVED_ROW: Final = operation(SAVED, State.SAVED, 10.0, 12.1)
REFUSED_ROW: Final = operation(REFUSED, State.REFUSED, 10.0, 13.5)


def said(asked_at: float, body: Said, *, took: float = 0.1) -> Change:
    """One more statement."""
    return lambda told: ([*told[0], at(asked_at, body, took=took)], told[1])


def only(asked_at: float, key: Key, *bodies: Said) -> Change:
    """Nothing was said of the key but this."""

    def change(told: Story) -> Story:
        others = [one for one in told[0] if isinstance(one.body, LagSaid) or one.body.key != key]
        return [*others, *(at(asked_at, body) for body in bodies)], told[1]

    return change


def holds(key: Key, row: Operation) -> Change:
    """Another row in the sender's ledger."""
    return lambda told: (told[0], replace(told[1], operations={**told[1].operations, key: row}))


def has(key: Key, *notes: Note) -> Change:
    """Other notes at the receiver."""
    return lambda told: (told[0], replace(told[1], notes={**told[1].notes, key: notes}))


def sealed(key: Key, sealed_at: float) -> Change:
    """Another tombstone at the receiver."""
    return lambda told: (told[0], replace(told[1], sealed={**told[1].sealed, key: sealed_at}))


def both(first: Change, second: Change) -> Change:
    return lambda told: second(first(told))


class Lie(NamedTuple):
    """What is planted, and which rule must name it."""

    rule: str
    what: str
    change: Change


LIES: Final = [
    Lie("saved_before_commit", "by the outbox", said(11.9, state(SAVED, State.SAVED), took=0.05)),
    Lie("saved_before_commit", "a microsecond early", said(11.9, state(SAVED, State.SAVED), took=0.099999)),
    Lie("saved_before_commit", "of a note that never is", said(22.0, state(TURNED, State.SAVED))),
    Lie("saved_before_commit", "completed", said(11.85, ReceiverSaid(SAVED, "completed", receipt(SAVED)))),
    Lie("saved_before_commit", "wait exits with 0", said(11.9, ExitSaid(SAVED, "wait", 0), took=0.05)),
    Lie(
        "saved_before_commit",
        "to a second enqueue",
        said(11.9, EnqueueSaid(SAVED, False, State.SAVED, receipt(SAVED)), took=0.05),
    ),
    Lie(
        "never_but_note",
        "not saved, and a note comes",
        only(11.0, DOUBTFUL, state(DOUBTFUL, State.NOT_SAVED)),
    ),
    Lie("never_but_note", "refused, after the note", only(16.0, DOUBTFUL, state(DOUBTFUL, State.REFUSED))),
    Lie("never_but_note", "sealed", only(11.0, DOUBTFUL, ReceiverSaid(DOUBTFUL, "sealed"))),
    Lie("never_but_note", "status exits with 6", only(16.0, DOUBTFUL, ExitSaid(DOUBTFUL, "status", 6))),
    Lie("never_but_note", "cancelled, nothing sent", only(11.0, DOUBTFUL, CancelSaid(DOUBTFUL, "settled"))),
    Lie("pending_after_commit", "a returned attempt", said(14.2, state(DOUBTFUL, State.PENDING))),
    Lie("retrying_after_commit", "an ambiguous answer", said(14.2, state(DOUBTFUL, State.RETRYING))),
    Lie("not_found_after_commit", "from a standby", said(14.2, ReceiverSaid(DOUBTFUL, "not_found"))),
    Lie("unsaved_without_seal", "refused before it was sealed", sealed(REFUSED, 13.65)),
    Lie(
        "unsaved_without_seal",
        "given up at its deadline",
        both(
            only(16.0, CANCELLED, state(CANCELLED, State.NOT_SAVED)),
            holds(CANCELLED, operation(CANCELLED, State.NOT_SAVED, 10.0, 13.0, by_call=True)),
        ),
    ),
    Lie("unsaved_without_seal", "sealed, by its word alone", said(16.0, ReceiverSaid(CANCELLED, "sealed"))),
    Lie("definite_contradiction", "two ends at once", said(13.5, state(REFUSED, State.NOT_SAVED), took=0.15)),
    Lie("state_went_back", "saved, then sending", said(13.0, state(SAVED, State.SENDING))),
    Lie("state_went_back", "refused, then unknown", said(14.0, state(REFUSED, State.UNKNOWN))),
    Lie("state_went_back", "by the exit code alone", said(13.0, ExitSaid(SAVED, "status", 5))),
    Lie("receiver_took_back", "sealed, then not found", said(14.0, ReceiverSaid(REFUSED, "not_found"))),
    Lie("receiver_took_back", "completed, then in progress", said(13.0, ReceiverSaid(SAVED, "in_progress"))),
    Lie("absent_after_commit", "not found once enqueued", said(10.5, AbsentSaid(SAVED))),
    Lie("created_twice", "two agents, one identity", said(10.1, EnqueueSaid(SAVED, True, State.PENDING))),
    Lie(
        "receipt_without_saved",
        "saved without one",
        said(13.0, replace(state(SAVED, State.SAVED), receipt=None)),
    ),
    Lie(
        "receipt_without_saved",
        "unknown with one",
        said(16.0, replace(state(TURNED, State.UNKNOWN), receipt=receipt(TURNED))),
    ),
    Lie(
        "receipts_differ",
        "another place",
        said(13.0, ReceiverSaid(SAVED, "completed", receipt(SAVED, location="/v1/notes/2"))),
    ),
    Lie(
        "receipts_differ",
        "another one was stored",
        holds(SAVED, replace(SAVED_ROW, receipt=receipt(SAVED, location="/v1/notes/2"))),
    ),
    Lie("receipt_of_another_note", "another version", has(SAVED, replace(note(SAVED, 12.0), version=2))),
    Lie(
        "first_words_disagree",
        "unknown, told as saved",
        said(14.6, replace(state(DOUBTFUL, State.UNKNOWN), sentence="Saved: it is note 1.")),
    ),
    Lie(
        "first_words_disagree",
        "unknown, told as not saved",
        said(14.6, replace(state(DOUBTFUL, State.UNKNOWN), sentence="NOT SAVED: it timed out.")),
    ),
    Lie(
        "first_words_disagree",
        "pending, told as not saved",
        said(10.3, replace(state(SAVED, State.PENDING), sentence="NOT SAVED: it waits.")),
    ),
    Lie("attempts_disagree", "pending after two calls", said(16.0, state(TURNED, State.PENDING, 2))),
    Lie("attempts_disagree", "unknown after none", said(16.0, state(TURNED, State.UNKNOWN, 0))),
    Lie("exit_code_disagrees", "unknown with 0", said(14.6, ExitSaid(DOUBTFUL, "status", 0, State.UNKNOWN))),
    Lie("exit_code_disagrees", "saved with 1", said(13.0, ExitSaid(SAVED, "wait", 1, State.SAVED))),
    Lie("lag_too_few", "without what is being sent", said(12.8, LagSaid(3, 2.85))),
    Lie("lag_too_few", "without what was never sent", said(13.6, LagSaid(1, 3.65))),
    Lie("lag_too_young", "age since the last call", said(12.8, LagSaid(4, 2.7))),
    Lie("lag_out_of_nothing", "more than there are", said(12.8, LagSaid(7, 2.85))),
    Lie("lag_out_of_nothing", "older than anything", said(12.8, LagSaid(4, 2.91))),
    Lie("lag_out_of_nothing", "parts without the whole", said(12.8, LagSaid(4, 2.85, {State.PENDING: 3}))),
    Lie("enqueue_lost", "confirmed and not there", said(16.0, EnqueueSaid(STRANGER, True, State.PENDING))),
    Lie(
        "rollback_left_something",
        "an operation",
        holds(DROPPED, operation(DROPPED, State.PENDING, 9.95, math.inf)),
    ),
    Lie("rollback_left_something", "a tombstone", sealed(DROPPED, 12.0)),
    Lie("note_lost", "saved, and nothing there", both(only(16.0, DOUBTFUL), has(DOUBTFUL))),
    Lie("note_unaccounted_for", "of nobody", has(STRANGER, note(STRANGER, 12.0))),
    Lie(
        "note_unaccounted_for",
        "of an operation given up",
        both(only(16.0, CANCELLED), has(CANCELLED, note(CANCELLED, 16.0))),
    ),
    Lie(
        "note_twice",
        "two notes",
        has(SAVED, note(SAVED, 12.0), replace(note(SAVED, 15.0), note_id="another")),
    ),
    Lie("note_behind_a_seal", "sealed and written", sealed(SAVED, 11.0)),
    Lie("note_of_other_arguments", "other arguments", holds(SAVED, replace(SAVED_ROW, args_hash="f" * 64))),
    Lie(
        "end_is_another",
        "refused, ends as not saved",
        holds(REFUSED, replace(REFUSED_ROW, state=State.NOT_SAVED)),
    ),
    Lie(
        "end_is_another",
        "saved, ends as unknown",
        holds(SAVED, replace(SAVED_ROW, state=State.UNKNOWN, receipt=None)),
    ),
]


def test_an_honest_story_has_no_violation() -> None:
    """Answers of every kind, some of them about a moment in the middle of a change."""
    told, ledger = story.honest()

    assert check(told, ledger) == []
    assert check(reversed(told), ledger) == []


def test_what_is_said_is_counted() -> None:
    """A run in which nobody answered proves nothing: that must show."""
    told, _ = story.honest()

    assert tally(told)["none"] == 2
    assert sum(tally(told).values()) == len(told)


def test_one_moment_is_no_order() -> None:
    """What has the same time may have been the other way around."""
    told, ledger = story.honest()
    told += [
        at(10.0, LagSaid(0, 0.0), took=0.0),
        Statement("somebody", 11.5, 12.0, state(SAVED, State.SAVED)),
        Statement("somebody", 12.0, 12.0, ReceiverSaid(SAVED, "not_found")),
        Statement("somebody", 12.0, 12.0, state(SAVED, State.PENDING)),
        Statement("somebody", 12.0, 12.1, LagSaid(4, 2.0)),
    ]
    enqueue = Statement("agent", 9.9, 10.0, EnqueueSaid(SAVED, True, State.PENDING))
    others = [one for one in told if not isinstance(one.body, EnqueueSaid)]

    assert check([*others, enqueue], ledger) == []


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: f"{lie.rule}-{lie.what}")
def test_a_lie_is_named(lie: Lie) -> None:
    told, ledger = lie.change(story.honest())

    assert {found.rule for found in check(told, ledger)} == {lie.rule}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: f"{lie.rule}-{lie.what}")
def test_only_its_rule_finds_it(lie: Lie) -> None:
    """No rule could be left out: without it, its lie passes."""
    told, ledger = lie.change(story.honest())
    left = [rule for rule in RULES if name_of(rule) != lie.rule]

    assert check(told, ledger, rules=left) == []


def test_every_rule_has_its_lie() -> None:
    names = [name_of(rule) for rule in RULES]

    assert sorted({lie.rule for lie in LIES}) == sorted(names)
    assert len(set(names)) == len(names)


def test_the_arrows_decide_what_may_follow() -> None:
    told, ledger = story.honest()
    without = [arrow for arrow in ARROWS if arrow.target is not State.SAVED]

    assert {found.rule for found in check(told, ledger, without)} == {"state_went_back"}


def test_a_violation_says_what_was_said() -> None:
    told, ledger = said(11.75, state(SAVED, State.SAVED), took=0.21875)(story.honest())

    (found,) = check(told, ledger)

    assert found.key == SAVED
    assert str(found).startswith(
        "saved_before_commit demo/researcher/saved: said to be saved; its note was committed 0.031250 s later"
    )
    assert "somebody, asked 11.750000, answered 11.968750" in str(found)


def test_an_answer_before_its_question_is_no_statement() -> None:
    with pytest.raises(ValueError, match="answered before it asked"):
        Statement("somebody", 2.0, 1.0, AbsentSaid(SAVED))
