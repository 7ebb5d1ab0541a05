"""Values that a careless caller, or a model, may pass to the sender's Python API."""

import types
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final
from uuid import UUID

from hypothesis import strategies as st

from oncebox_outbox import Intent

# All of Unicode, and what is none: lone surrogates too.
any_text = st.text(st.characters(categories=None, exclude_categories=None), max_size=20)
blank_text = st.sampled_from(["", " ", "\t\n", "\u200b", "\ufeff", "\u00a0", "\u3000", "\x00", "\x1f"])
long_text = st.sampled_from([200, 201, 300, 301, 2001, 100_000]).map(lambda length: "x" * length)
odd_text = st.one_of(
    any_text, blank_text, long_text, st.sampled_from(["note-7\u200b", "n\u043ete-7", "a b", "a/b", "-a"])
)

no_text = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.binary(max_size=8),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.builds(object),
    st.sampled_from([str, UUID(int=7), datetime(2030, 1, 1, tzinfo=UTC), ("a",), frozenset({"a"})]),
)
anything = st.one_of(odd_text, no_text)


class NoOffset(tzinfo):
    """A zone that does not say how far it is from UTC."""

    def utcoffset(self, _: datetime | None) -> None:
        return None


zones = st.one_of(
    st.sampled_from([UTC, None, NoOffset()]),
    st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
deadlines = st.one_of(
    st.datetimes(timezones=zones),
    st.timedeltas(),
    st.timedeltas(timedelta(microseconds=1), timedelta(days=7)),
    st.sampled_from(
        [timedelta.max, timedelta.min, timedelta(0), timedelta(days=7), timedelta(days=7, microseconds=1)]
    ),
    anything,
)

json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        any_text,
        st.integers(0, 1100).map(lambda bits: 1 << bits),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(any_text, inner, max_size=3),
        st.tuples(inner),
        st.builds(object),
    ),
    max_leaves=6,
)
contexts = st.one_of(
    st.dictionaries(any_text, json_values, max_size=4),
    st.dictionaries(any_text, json_values, max_size=2).map(types.MappingProxyType),
    st.integers(1, 12).map(lambda depth: nested(depth)),
    st.just({"large": "x" * 70_000}),
    st.dictionaries(st.integers(), st.integers(), min_size=1, max_size=2),
    anything,
)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"leaf": 1}
    for _ in range(depth - 1):
        value = {"deeper": value}
    return value


INTENT: Final[dict[str, Any]] = {"run": "run-42", "step": "summarise", "purpose": "keep finding 7"}
RIGHT: Final[dict[str, dict[str, Any]]] = {
    "save_note": {"folder": "drafts", "title": "Finding 7", "text": "Reef B", "operation_id": "note-7"},
    "revise_note": {
        "note_id": "00000000-0000-7000-8000-000000000000",
        "if_match": "1-0123456789abcdef",
        "title": "Finding 7",
        "text": "Reef B",
        "operation_id": "note-7",
    },
}
"""Calls that are right in everything."""

STRANGE: Final[dict[str, st.SearchStrategy[Any]]] = {
    "deadline": deadlines,
    "supersedes": st.one_of(st.uuids(), anything),
    "intent": st.one_of(anything, st.just(INTENT)),
    "intent.context": contexts,
    "intent.trace_context": contexts,
}
"""Where something else than `anything` is worth a try."""

NAMES: Final = {
    method: (
        *right,
        "format",
        "ordering_key",
        "deadline",
        "supersedes",
        "intent",
        "tenant",
        "principal",
        "destination",
    )
    for method, right in RIGHT.items()
}
INTENT_NAMES: Final = tuple(f"intent.{name}" for name in (*INTENT, "context", "trace_context"))


@st.composite
def changes(draw: st.DrawFn, method: str) -> dict[str, Any]:
    """One to three arguments of the method, each with a strange value. An intent is changed whole or in parts."""
    names = st.lists(st.sampled_from([*NAMES[method], *INTENT_NAMES]), min_size=1, max_size=3, unique=True)
    chosen = draw(names)
    if "intent" in chosen:
        chosen = [name for name in chosen if not name.startswith("intent.")]
    return {name: draw(STRANGE.get(name, anything)) for name in chosen}


def intent(changed: dict[str, Any]) -> Any:
    """The intent of a call with these changes."""
    if "intent" in changed:
        return changed["intent"]
    parts = {
        name.removeprefix("intent."): value for name, value in changed.items() if name.startswith("intent.")
    }
    return Intent(**(INTENT | parts))
