"""The history checker: what everybody was told in a run, judged by what turned out to be true. Pure.

It accuses nobody wrongly, and may miss something: where the moment of a commit or of a reading is known within bounds
only, the bounds are taken in favour of the one who spoke.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from oncebox_models.states import ARROWS, Arrow
from tests.proof.history.indexed import History
from tests.proof.history.rules import about_each_other, about_lag, about_ledgers, about_notes, about_words
from tests.proof.history.statements import Statement
from tests.proof.history.truth import Ledger
from tests.proof.history.violations import Rule, Violation

RULES: Final[tuple[Rule, ...]] = (
    about_notes.saved_before_commit,
    about_notes.never_but_note,
    about_notes.pending_after_commit,
    about_notes.retrying_after_commit,
    about_notes.not_found_after_commit,
    about_notes.unsaved_without_seal,
    about_each_other.definite_contradiction,
    about_each_other.state_went_back,
    about_each_other.receiver_took_back,
    about_each_other.absent_after_commit,
    about_each_other.created_twice,
    about_words.receipt_without_saved,
    about_words.receipts_differ,
    about_words.receipt_of_another_note,
    about_words.first_words_disagree,
    about_words.attempts_disagree,
    about_words.exit_code_disagrees,
    about_lag.lag_too_few,
    about_lag.lag_too_young,
    about_lag.lag_out_of_nothing,
    about_ledgers.enqueue_lost,
    about_ledgers.rollback_left_something,
    about_ledgers.note_lost,
    about_ledgers.note_unaccounted_for,
    about_ledgers.note_twice,
    about_ledgers.note_behind_a_seal,
    about_ledgers.note_of_other_arguments,
    about_ledgers.end_is_another,
)


def check(
    statements: Iterable[Statement],
    ledger: Ledger,
    arrows: Iterable[Arrow] = ARROWS,
    rules: Sequence[Rule] = RULES,
) -> list[Violation]:
    """All that was said and is not so, and all that the two ledgers disagree on; empty for an honest run.

    Takes time in proportion to n log n. Statements may come in any order.
    """
    history = History(statements, ledger, arrows)
    return [
        Violation(name_of(rule), found.key, found.says, found.statements)
        for rule in rules
        for found in rule(history)
    ]


def name_of(rule: Rule) -> str:
    """How a violation names the rule."""
    return str(getattr(rule, "__name__", rule))


def tally(statements: Iterable[Statement]) -> dict[str, int]:
    """How many statements of each kind there are; `none` counts questions without an answer."""
    return dict(sorted(Counter(said.body.kind for said in statements).items()))
