"""What happens in a demonstration is decided by its seed, before it begins."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncebox_operate.demo.script import DEFAULT_FAULTS, FaultKind, Script, faults_named


def test_a_seed_decides_everything_and_another_seed_decides_otherwise() -> None:
    assert Script(seed=7).strikes() == Script(seed=7).strikes()
    assert Script(seed=7).roll_backs() == Script(seed=7).roll_backs()
    assert Script(seed=7).strikes() != Script(seed=8).strikes()
    assert Script(seed=7).roll_backs() != Script(seed=8).roll_backs()


@given(st.integers(), st.integers(2, 2000), st.floats(0.5, 200))
def test_every_chosen_fault_strikes_while_the_agent_works(seed: int, ops: int, rate: float) -> None:
    script = Script(ops=ops, rate=rate, seed=seed)
    strikes = script.strikes()

    assert {strike.kind for strike in strikes} == set(DEFAULT_FAULTS)
    assert [strike.at_s for strike in strikes] == sorted(strike.at_s for strike in strikes)
    assert all(0 < strike.at_s < script.duration_s for strike in strikes)


@given(st.integers())
def test_at_the_default_size_there_are_more_strikes_than_are_required(seed: int) -> None:
    script = Script(seed=seed)
    planned = Counter(strike.kind for strike in script.strikes())

    assert all(planned[kind] > script.required(kind) or planned[kind] == 2 for kind in DEFAULT_FAULTS)
    assert len(script.roll_backs()) >= script.required_rolled_back == 20
    assert 0 not in script.roll_backs(), "the first operation is the story's"


def test_workers_are_killed_early_since_a_lease_lasts_long() -> None:
    kills = [s.at_s for seed in range(50) for s in Script(seed=seed).strikes() if s.kind == "killed_workers"]

    assert max(kills) < 20


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        (["lost_replies"], (FaultKind.LOST_REPLIES,)),
        (["Killed-Workers", " lost replies "], (FaultKind.LOST_REPLIES, FaultKind.KILLED_WORKERS)),
        (["none"], ()),
        ([], ()),
    ],
)
def test_faults_are_chosen_by_name(names: list[str], kinds: tuple[FaultKind, ...]) -> None:
    assert faults_named(names) == kinds


@pytest.mark.parametrize("names", [["lost"], ["none", "lost_replies"]])
def test_a_name_that_is_none_is_refused_with_those_that_are(names: list[str]) -> None:
    with pytest.raises(ValueError, match="killed_workers"):
        faults_named(names)
