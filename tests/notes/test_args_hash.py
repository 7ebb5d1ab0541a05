"""The hash of arguments: golden vectors that both sides test, and a full RFC 8785 implementation as oracle."""

import hashlib
import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from oncebox_notes import canonical
from tests.notes.wire_examples import FOLDER

VECTORS: list[dict[str, Any]] = json.loads((FOLDER / "args_hash.json").read_text(encoding="utf-8"))["vectors"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NAMES = st.sampled_from(["folder", "title", "text", "format", "note_id", "if_match"])


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_golden_vectors_give_the_same_bytes_and_hash_for_ever(vector: dict[str, Any]) -> None:
    """R31, R32: the canonical form does not depend on a library or a locale."""
    assert canonical.canonical_bytes(vector["kind"], vector["arguments"]).decode() == vector["canonical"]
    assert canonical.args_hash(vector["kind"], vector["arguments"]) == vector["args_hash"]


@given(st.sampled_from(["note.create", "note.revise"]), st.dictionaries(NAMES, TEXT))
def test_string_arguments_have_the_bytes_of_rfc_8785(kind: str, arguments: dict[str, str]) -> None:
    oracle = rfc8785.dumps({"v": 1, "kind": kind, "arguments": arguments})
    assert canonical.canonical_bytes(kind, arguments) == oracle
    assert canonical.args_hash(kind, arguments) == hashlib.sha256(oracle).hexdigest()
