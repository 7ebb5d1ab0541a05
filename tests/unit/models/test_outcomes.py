"""Receipts are kept as bytes: equal receipts are equal bytes."""

import json

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from oncebox_models.outcomes import Receipt

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
NOTES = st.dictionaries(
    st.sampled_from(["id", "folder", "etag", "location", "created_at", "version"]),
    TEXTS | st.integers(1, 10**6),
)


@given(TEXTS, NOTES)
def test_a_receipt_is_canonical_and_reads_back(operation_id: str, note: dict[str, object]) -> None:
    receipt = Receipt(operation_id, "a" * 64, note)
    assert receipt.text.encode() == rfc8785.dumps(json.loads(receipt.text))
    assert Receipt.parse(receipt.text) == receipt


@given(NOTES)
def test_the_order_of_the_members_does_not_count(note: dict[str, object]) -> None:
    """R28: the same receipt, however the receiver orders its members."""
    backwards = dict(reversed(note.items()))
    assert Receipt("note-7", "a" * 64, backwards).text == Receipt("note-7", "a" * 64, note).text


@pytest.mark.parametrize(
    "text",
    ["{}", "[]", "null", '"x"', '{"operation_id": 7, "args_hash": "a", "note": {}}',
     '{"operation_id": "a", "args_hash": "a", "note": []}', '{"operation_id": "a", "args_hash": "a"}'],
)  # fmt: skip
def test_anything_else_is_not_a_receipt(text: str) -> None:
    with pytest.raises(ValueError, match="not a receipt"):
        Receipt.parse(text)


def test_what_is_not_json_is_a_value_error_too() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        Receipt.parse("{")
