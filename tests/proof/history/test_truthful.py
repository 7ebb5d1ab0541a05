"""Whatever happens, the truth raises no alarm; and in whatever happens, the first lie does."""

import time
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oncebox_models.states import State
from tests.proof.history import simulated
from tests.proof.history.checker import check
from tests.proof.history.simulated import TICKS, Asked, Life, Luck, Question, Step
from tests.proof.history.statements import LagSaid, Statement, StateSaid

FEW = st.integers(0, 8)
STEPS = st.lists(st.builds(Step, st.sampled_from(Luck), FEW, FEW, FEW), max_size=6)
LIVES = st.lists(st.tuples(st.integers(1000, 1060), FEW, FEW, STEPS), min_size=1, max_size=5).map(
    lambda plans: [simulated.lived(number, *plan) for number, plan in enumerate(plans)]
)
ASKED = st.sampled_from(("state", "receiver", "status", "wait", "enqueue", "lag"))
QUESTIONS = st.lists(
    st.builds(Question, ASKED, st.integers(0, 4), st.integers(995, 1180), FEW, FEW), max_size=40
)


@given(lives=LIVES, questions=QUESTIONS)
@settings(max_examples=400)
def test_the_truth_raises_no_alarm(lives: list[Life], questions: list[Question]) -> None:
    assert check(simulated.told(lives, questions), simulated.ledger(lives)) == []


@given(lives=LIVES, questions=QUESTIONS, early=st.integers(1, 100))
def test_saved_before_the_commit_is_always_found(
    lives: list[Life], questions: list[Question], early: int
) -> None:
    life = next((life for life in lives if life.note is not None), None)
    assume(life is not None)
    assert life is not None
    assert life.note is not None
    when = (life.note - early) / TICKS
    lie = StateSaid(life.key, State.SAVED, "Saved: it is note 1.", life.receipt)

    found = check(
        [*simulated.told(lives, questions), Statement("liar", when, when, lie)], simulated.ledger(lives)
    )

    assert "saved_before_commit" in {violation.rule for violation in found}


@given(lives=LIVES, questions=QUESTIONS, when=st.integers(1000, 1180))
def test_one_operation_too_few_is_always_found(
    lives: list[Life], questions: list[Question], when: int
) -> None:
    """Asked and answered in one moment, in which every enqueue that is open is confirmed."""
    open_ = [life for life in lives if life.open(when)]
    assume(open_ and all(life.confirmed < when for life in open_))
    truth = simulated.lag(lives, when)
    lie = LagSaid(truth.entries - 1, truth.oldest_age_s)

    found = check(
        [*simulated.told(lives, questions), Statement("liar", when / TICKS, when / TICKS, lie)],
        simulated.ledger(lives),
    )

    assert [violation.rule for violation in found] == ["lag_too_few"]


@given(lives=LIVES, questions=QUESTIONS, when=st.integers(1000, 1180))
def test_an_age_since_the_last_attempt_is_always_found(
    lives: list[Life], questions: list[Question], when: int
) -> None:
    """The age of the oldest, a tick too small."""
    open_ = [life for life in lives if life.open(when)]
    assume(open_ and all(life.confirmed < when for life in open_))
    truth = simulated.lag(lives, when)
    oldest = max(when - life.created for life in open_)
    lie = replace(truth, oldest_age_s=(oldest - 1) / TICKS)

    found = check(
        [*simulated.told(lives, questions), Statement("liar", when / TICKS, when / TICKS, lie)],
        simulated.ledger(lives),
    )

    assert [violation.rule for violation in found] == ["lag_too_young"]


def test_much_is_judged_in_little_time() -> None:
    """All about one operation, and as much about the backlog: comparing each with each would take minutes."""
    life = simulated.lived(
        0, 1000, 0, 0, [Step(Luck.TURNED_AWAY, 1, 1, 1), Step(Luck.EXECUTED, 40_000, 1, 1)]
    )
    asked: list[Asked] = ["state", "receiver", "lag"]
    questions = [Question(asked[tick % 3], 0, tick, 0, tick % 8) for tick in range(995, 41_500)]
    said = simulated.told([life], questions)
    began = time.process_time()

    assert check(said, simulated.ledger([life])) == []

    # About half a second; the rest is room for a machine that does much else.
    assert time.process_time() - began < 20
