"""The frozen bytes and their hash: the same for everybody, for ever."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from oncebox_models.arguments import check_arguments
from oncebox_models.canonical import HASH_ALG, args_hash, canonical_arguments

EXAMPLES = Path(__file__).parents[3] / "docs" / "wire" / "examples" / "args_hash.json"

# Every text that can be stored: all of Unicode but NUL and lone surrogates.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
NAMES = st.from_regex(r"[a-z][a-z_]{0,20}", fullmatch=True)
KINDS = st.sampled_from(["note.create", "note.revise"])


@given(st.dictionaries(NAMES, TEXTS, max_size=6))
def test_the_bytes_are_those_of_rfc_8785(arguments: dict[str, str]) -> None:
    """R31: sorted by code unit, whatever the locale."""
    assert canonical_arguments(arguments).encode() == rfc8785.dumps(arguments)


@given(KINDS, st.dictionaries(NAMES, TEXTS, max_size=6))
def test_the_hash_is_sha_256_over_the_canonical_v_kind_and_arguments(
    kind: str, arguments: dict[str, str]
) -> None:
    expected = hashlib.sha256(rfc8785.dumps({"v": 1, "kind": kind, "arguments": arguments})).hexdigest()
    assert args_hash(kind, canonical_arguments(arguments)) == expected


@given(st.dictionaries(NAMES, TEXTS, min_size=2, max_size=6), st.randoms())
def test_the_order_of_the_members_does_not_count(arguments: dict[str, str], random: Any) -> None:
    """R31: a map in another order is the same operation."""
    items = list(arguments.items())
    random.shuffle(items)
    assert canonical_arguments(dict(items)) == canonical_arguments(arguments)


@given(st.dictionaries(NAMES, TEXTS, max_size=6))
def test_the_bytes_read_back_as_the_arguments(arguments: dict[str, str]) -> None:
    assert json.loads(canonical_arguments(arguments)) == arguments


def test_another_kind_is_another_hash() -> None:
    """R34: everything that changes the meaning is in the hash."""
    assert args_hash("note.create", "{}") != args_hash("note.revise", "{}")


def test_what_is_hashed_holds_no_number() -> None:
    """R32: 1 and 1.0 cannot differ between two libraries, since no argument may be a number."""
    for number in (1, 1.0):
        arguments, faults = check_arguments("note.create", {"folder": "f", "title": "t", "text": number})
        assert arguments == {}
        assert [fault.path for fault in faults] == ["arguments.text"]


def test_a_known_vector_never_changes() -> None:
    canonical = canonical_arguments(
        {"title": "Ünï\u2028\U0001f600", "folder": "drafts", "text": 'a"\\\n\x1f/'}
    )
    assert canonical == '{"folder":"drafts","text":"a\\"\\\\\\n\\u001f/","title":"Ünï\u2028\U0001f600"}'
    assert (
        args_hash("note.create", canonical)
        == "f4911da680ffb65aa9e7ffe1ee226c1930e00de9c7dc5c63cc58ecf97f060d39"
    )
    assert HASH_ALG == "jcs-sha256/1"


def _vectors() -> list[dict[str, Any]]:
    return json.loads(EXAMPLES.read_text(encoding="utf-8"))["vectors"]


@pytest.mark.parametrize("vector", _vectors(), ids=lambda vector: vector["name"])
def test_the_vectors_of_the_wire_hold(vector: dict[str, Any]) -> None:
    """R31, R32: both sides hash the published examples alike."""
    canonical = canonical_arguments(vector["arguments"])
    whole = f'{{"arguments":{canonical},"kind":"{vector["kind"]}","v":1}}'
    assert (whole, args_hash(vector["kind"], canonical)) == (vector["canonical"], vector["args_hash"])
