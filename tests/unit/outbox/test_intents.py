"""Intents: their identity, the ids derived from them, and what their context may hold."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncebox_models.names import wrong_operation_id
from oncebox_outbox import Intent
from oncebox_outbox.intents import CONTEXT_BYTES, CONTEXT_DEPTH, PURPOSE_LENGTH, derived_operation_id

LABELS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).filter(str.strip)


def _faults(**changes: Any) -> dict[str, str]:
    right: dict[str, Any] = {"run": "r", "step": "s", "purpose": "why"}
    return {fault.path: fault.message for fault in Intent(**right | changes).faults()}


def _nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def test_an_intent_without_faults() -> None:
    context = {"sources": ["a", {"b": 1}], "score": 0.5, "none": None, "ok": True}
    assert _faults(context=context, trace_context={"traceparent": "00-..."}) == {}


def test_all_faults_are_told_at_once_with_their_paths() -> None:
    """Also the size, which cannot be told of a context that is no JSON."""
    assert _faults(
        run="", step="a\nb", purpose=" ",
        context={"x": [1, float("nan")], "y": {"z": float("inf")}, "n": "a\x00", "s": {1}, 7: "k", "big": "x" * CONTEXT_BYTES},
        trace_context={"traceparent": "\ud800"},
    ).keys() == {
        "intent.run", "intent.step", "intent.purpose", "intent.context.x[1]", "intent.context.y.z",
        "intent.context.n", "intent.context.s", "intent.context", "intent.trace_context.traceparent",
    }  # fmt: skip


def test_a_context_that_is_too_large_is_told_along_with_other_faults() -> None:
    faults = _faults(purpose="", context={"big": "x" * CONTEXT_BYTES})
    assert faults.keys() == {"intent.purpose", "intent.context"}


@pytest.mark.parametrize("name", ["context", "trace_context"])
def test_a_context_of_exactly_the_limit_is_accepted_and_one_byte_more_is_not(name: str) -> None:
    """F48: the size and the limit are in the message."""
    frame = len('{"a":""}')
    assert _faults(**{name: {"a": "x" * (CONTEXT_BYTES - frame)}}) == {}
    assert _faults(**{name: {"a": "é" * ((CONTEXT_BYTES - frame) // 2) + "x"}}) == {
        f"intent.{name}": f"is {CONTEXT_BYTES + 1:,} bytes of JSON; at most {CONTEXT_BYTES:,} are allowed"
    }


def test_a_context_of_exactly_the_depth_is_accepted_and_one_level_more_is_not() -> None:
    assert _faults(context=_nested(CONTEXT_DEPTH)) == {}
    (path, message), *none = _faults(context=_nested(CONTEXT_DEPTH + 1)).items()
    assert none == []
    assert path == "intent.context" + ".a" * CONTEXT_DEPTH
    assert str(CONTEXT_DEPTH) in message


def test_a_context_that_holds_itself_is_too_deep() -> None:
    loop: dict[str, object] = {}
    loop["me"] = loop
    assert len(_faults(context=loop)) == 1


@pytest.mark.parametrize("number", [10**5_000, -(10**5_000)], ids=["positive", "negative"])
def test_a_number_that_nobody_can_store_is_a_fault(number: int) -> None:
    assert list(_faults(context={"n": number})) == ["intent.context.n"]


@pytest.mark.parametrize(
    ("purpose", "said"),
    [
        ("", "is blank"),
        ("x" * (PURPOSE_LENGTH + 1), "has 2001 characters; at most 2000 are allowed"),
        ("a\x00", "NUL"),
        ("\udc00", "lone surrogate"),
        (None, "must be a string, got NoneType"),
    ],
)
def test_a_wrong_purpose_is_told(purpose: object, said: str) -> None:
    assert said in _faults(purpose=purpose)["intent.purpose"]


def test_a_purpose_may_have_lines() -> None:
    assert _faults(purpose="first\nsecond" + "x" * (PURPOSE_LENGTH - 12)) == {}


@given(LABELS, LABELS, st.sampled_from(["note.create", "note.revise"]))
def test_a_derived_operation_id_is_a_right_one_and_always_the_same(run: str, step: str, kind: str) -> None:
    derived = derived_operation_id(Intent(run, step, "why"), kind)
    assert wrong_operation_id(derived) is None
    assert derived == derived_operation_id(Intent(run, step, "another purpose", {"more": 1}), kind)


@given(st.tuples(LABELS, LABELS), st.tuples(LABELS, LABELS))
def test_different_places_derive_different_ids(one: tuple[str, str], other: tuple[str, str]) -> None:
    ids = {derived_operation_id(Intent(run, step, "why"), "note.create") for run, step in (one, other)}
    assert len(ids) == len({one, other})


def test_no_separator_lets_two_places_meet() -> None:
    places = [("a:b", "c"), ("a", "b:c"), ("a/b", "c"), ("a", "b/c"), ('a","b', "c"), ("a", 'b","c')]
    assert len(
        {derived_operation_id(Intent(run, step, "why"), "note.create") for run, step in places}
    ) == len(places)
    assert len({Intent(run, step, "why").id("demo", "p") for run, step in places}) == len(places)


def test_an_intents_id_is_its_identity_alone() -> None:
    """R36: a reworded purpose is no other intent."""
    intent = Intent("run", "step", "why", {"model": "a"})
    assert intent.id("demo", "p") == Intent("run", "step", "because", {"model": "b"}).id("demo", "p")
    assert intent.id("demo", "p").version == 8
    assert len({intent.id("demo", "p"), intent.id("demo", "q"), intent.id("other", "p")}) == 3
