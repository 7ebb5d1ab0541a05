"""What is no right JSON object of the service's: a right one with one thing wrong, as bytes."""

import json
from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies as st

_UNKNOWN_FIELDS: Final = [
    *("authorized", "tenant", "principal", "on_behalf_of_", "dry_run", "note", "id", "version", "args_hash"),
    *("__proto__", "", " title", "Title", "title\u200b", "\x00", "é", "$ref"),
]
_HUGE: Final = ["1e400", "-1e400", "1" * 400, "0." + "0" * 400 + "1", "-0", "1E+2", "9007199254740993"]

plain_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
# Values that no field of any schema takes: all of them are strings, or objects of those.
wrong_values = st.one_of(
    st.sampled_from(
        ["NaN", "Infinity", "-Infinity", *_HUGE, "true", "false", "[]", "{}", '["a"]', '{"a":"b"}']
    ),
    st.integers(1, 200).map(lambda depth: "[" * depth + "]" * depth),
    st.integers(1, 200).map(lambda depth: '{"a":' * depth + "1" + "}" * depth),
    plain_json.filter(lambda value: not isinstance(value, str) and value is not None).map(json.dumps),
)
# Strings that are no text: they are syntax to JSON, and there is nothing to store.
no_texts = st.sampled_from(
    [r'"\u0000"', r'"a\u0000b"', r'"\ud800"', r'"\udfff\ud800"', r'"\ud83d"', r'"a\udc00"']
)


def fields(of: dict[str, Any]) -> dict[str, str]:
    """Names and values as JSON, ready to be replaced."""
    return {json.dumps(name): json.dumps(value) for name, value in of.items()}


def join(members: list[tuple[str, str]]) -> bytes:
    return ("{" + ",".join(f"{name}:{value}" for name, value in members) + "}").encode()


def wrong_objects(right: dict[str, Any], optional: frozenset[str] = frozenset()) -> st.SearchStrategy[bytes]:
    """Valid JSON that is no object of this schema: another value, a name too much, one twice, one missing."""
    members = fields(right)
    names = st.sampled_from([*members])
    required = st.sampled_from([name for name in members if json.loads(name) not in optional])

    def with_value(name: str, value: str) -> bytes:
        return join([*(members | {name: value}).items()])

    def with_unknown(name: str, value: str, place: int) -> bytes:
        listed = [*members.items()]
        listed.insert(place % (len(listed) + 1), (json.dumps(name), value))
        return join(listed)

    def twice(name: str, place: int) -> bytes:
        listed = [*members.items()]
        listed.insert(place % (len(listed) + 1), (name, members[name]))
        return join(listed)

    unknown = st.one_of(st.sampled_from(_UNKNOWN_FIELDS), st.text(max_size=12)).filter(
        lambda name: name not in right and name not in KNOWN
    )
    anything = st.one_of(wrong_values, st.just("true"), st.just('"demo"'), st.just("null"))
    return st.one_of(
        st.builds(with_value, names, wrong_values),
        st.builds(with_value, names, no_texts),
        st.builds(with_value, required, st.just("null")),
        st.builds(with_unknown, unknown, anything, st.integers(0, 9)),
        st.builds(twice, names, st.integers(0, 9)),
        required.map(lambda name: join([pair for pair in members.items() if pair[0] != name])),
        wrong_values.filter(lambda value: not value.startswith("{")).map(str.encode),
        st.sampled_from([b"null", b'"text"', b"[]", b"[{}]", b"{}"]),
    )


KNOWN: Final = frozenset({"format", "call_id", "on_behalf_of", "args_hash"})
"""Optional names of one or another schema, which are not unknown."""


def no_json(right: bytes) -> st.SearchStrategy[bytes]:
    """Bytes that are no JSON text at all, made of a right one."""
    cut = st.integers(0, len(right) - 1).map(lambda end: right[:end])

    def insert(place: int, piece: bytes) -> bytes:
        return right[: place % len(right)] + piece + right[place % len(right) :]

    broken = st.sampled_from(
        [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80"]
    )
    ends = [b"{}", b",", b"}", b"]", b"\x00", b"//", b"/* */", b"#", b"null", right]
    encodings: list[Callable[[str], bytes]] = [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("utf-32"),
    ]
    return st.one_of(
        cut,
        st.builds(insert, st.integers(0, len(right) - 1), broken),
        st.sampled_from(ends).map(lambda end: right + end),
        st.sampled_from(encodings).map(lambda encode: encode(right.decode())),
        st.sampled_from(
            [b"", b" ", b"\n", b"{", b"'", b"nul", b"{'a':1}", b'{"a":1,}', b"{a:1}", b"+1", b"01", b"a=b"]
        ),
        st.integers(1_000, 300_000).map(lambda depth: b"[" * depth),
        st.integers(1_000, 100_000).map(lambda depth: b'{"a":' * depth),
        st.binary(max_size=60).filter(lambda found: not is_json(found)),
    )


def is_json(body: bytes) -> bool:
    try:
        json.loads(body.decode("utf-8"))
    except ValueError:
        return False
    return True
