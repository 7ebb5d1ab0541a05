"""Bodies that are wrong: refused as a whole or at their item, and nothing recorded."""

import itertools
import json
import time
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proof.properties.budget import tries
from tests.proof.properties.problem_shape import check_shape
from tests.proof.properties.raw_http import exchange
from tests.proof.properties.target import BATCH, CREATE, LISTING, REVISE, SEAL_MANY, WRITING, Target, enlist
from tests.proof.properties.wrong_json import no_json, plain_json, wrong_objects

LIMIT: Final = 8 * 1024 * 1024
OPTIONAL: Final = frozenset({"format"})
_NUMBERS: Final = itertools.count()


def wrong_items(target: Target, endpoint: bytes) -> st.SearchStrategy[bytes]:
    """An item with something wrong in it, or in the arguments that it carries."""
    right = target.item(endpoint)
    if endpoint != BATCH:
        return wrong_objects(right, OPTIONAL)
    outer = {name: value for name, value in right.items() if name != "arguments"}
    inner = wrong_objects(right["arguments"], OPTIONAL)

    def carry(arguments: bytes) -> bytes:
        return json.dumps(outer).encode()[:-1] + b',"arguments":' + arguments + b"}"

    return st.one_of(wrong_objects(right), inner.map(carry))


@pytest.mark.parametrize("endpoint", WRITING)
@given(data=st.data())
@tries(120)
def test_an_object_of_another_shape_is_refused(target: Target, endpoint: bytes, data: st.DataObject) -> None:
    """`authorized: true` gives nothing; NaN, huge numbers, lone surrogates, NUL and names said twice are no text."""
    body = data.draw(wrong_objects(target.item(endpoint), OPTIONAL))
    problem = target.refuse(target.build(endpoint, body=body), "invalid_argument")
    assert problem["errors"]


@pytest.mark.parametrize("endpoint", [*WRITING, *LISTING])
@given(data=st.data())
@tries(60)
def test_what_is_no_json_is_refused(target: Target, endpoint: bytes, data: st.DataObject) -> None:
    """Cut off, in another encoding, with a mark at its beginning, nested without an end."""
    body = data.draw(no_json(target.body(endpoint)))
    target.refuse(target.build(endpoint, body=body), "invalid_argument")


@pytest.mark.parametrize("endpoint", LISTING)
@given(data=st.data())
@tries(60)
def test_a_list_of_another_shape_is_refused(target: Target, endpoint: bytes, data: st.DataObject) -> None:
    right = json.loads(target.body(endpoint))
    (name,) = right
    wrong = wrong_objects(right).filter(lambda body: _list_of(body, name) is None)
    target.refuse(target.build(endpoint, body=data.draw(wrong)), "invalid_argument")


def _list_of(body: bytes, name: str) -> list[Any] | None:
    """The items, if it is a list of some that the endpoint would look at one by one."""
    parsed = json.loads(body)
    found = parsed.get(name) if isinstance(parsed, dict) and parsed.keys() == {name} else None
    return found if isinstance(found, list) and found and body.count(f'"{name}":'.encode()) == 1 else None


@pytest.mark.parametrize("endpoint", LISTING)
@given(data=st.data())
@tries(60)
def test_a_wrong_item_is_refused_where_it_stands(
    target: Target, endpoint: bytes, data: st.DataObject
) -> None:
    item = data.draw(wrong_items(target, endpoint))
    answer = target.send(target.build(endpoint, body=enlist(endpoint, [item])))
    assert answer.status == 200, answer
    (refused,) = answer.json["items"]
    check_refused(refused)


def check_refused(item: dict[str, Any]) -> None:
    assert 400 <= item["status"] < 500, item
    check_shape(item["problem"], item["status"])


@given(data=st.data())
@tries(40)
def test_a_wrong_item_harms_no_neighbour(target: Target, data: st.DataObject) -> None:
    """Whatever stands between them, the good ones are executed, and nothing else."""
    keys = [f"good-{next(_NUMBERS)}" for _ in range(2)]
    first, second = (json.dumps(target.item(BATCH, key)).encode() for key in keys)
    wrong = data.draw(st.lists(wrong_items(target, BATCH), min_size=1, max_size=3))
    body = enlist(BATCH, [first, *wrong, second])
    answer = exchange(target.url, target.build(BATCH, body=body))
    assert answer.status == 200, answer
    one, *between, other = answer.json["items"]
    assert [(item["operation_id"], item["status"]) for item in (one, other)] == [(key, 201) for key in keys]
    for item in between:
        check_refused(item)
    assert [after - before for before, after in zip(*target.forget_what_was_recorded(), strict=True)] == [
        2,
        2,
        2,
    ]


@pytest.mark.parametrize("endpoint", [*WRITING, *LISTING])
@given(value=plain_json)
@tries(40)
def test_any_json_is_refused_by_all(target: Target, endpoint: bytes, value: object) -> None:
    body = json.dumps(value).encode()
    target.refuse(target.build(endpoint, body=body), "invalid_argument")


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("endpoint", [*WRITING, *LISTING])
def test_a_body_of_one_byte_too_many_is_refused(target: Target, endpoint: bytes, chunked: bool) -> None:
    """F48: 8 MiB are read, and found to be no JSON; one byte more is refused with the number, declared or not."""
    for size, code in ((LIMIT, "invalid_argument"), (LIMIT + 1, "too_large")):
        body = b"[" + b" " * (size - 1)
        sent = target.build(endpoint, body=body)
        if chunked:
            head, _, _ = target.build(
                endpoint, body=b"", without=b"Content-Length", headers=[(b"Transfer-Encoding", b"chunked")]
            ).partition(b"\r\n\r\n")
            sent = head + b"\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (size, body)
        problem = target.refuse(sent, code)
        assert (str(LIMIT) in problem["errors"][0]["message"]) == (code == "too_large")


@pytest.mark.parametrize("endpoint", [CREATE, REVISE])
def test_a_text_of_one_byte_too_many_is_refused(target: Target, endpoint: bytes) -> None:
    """F48: in bytes, not in characters."""
    for text in ("x" * 262_145, "é" * 131_072 + "x", "\U0001f40b" * 65_537):
        body = json.dumps(target.item(endpoint) | {"text": text}, ensure_ascii=False).encode()
        target.refuse(target.build(endpoint, body=body), "too_large")


@pytest.mark.parametrize("endpoint", [BATCH, SEAL_MANY])
def test_a_list_of_one_item_too_many_is_refused(target: Target, endpoint: bytes) -> None:
    item = json.dumps(target.item(endpoint)).encode()
    target.refuse(target.build(endpoint, body=enlist(endpoint, [item] * 501)), "too_large")
    target.refuse(target.build(endpoint, body=enlist(endpoint, [])), "invalid_argument")


def test_a_body_full_of_names_is_refused_as_fast_as_it_is_read(target: Target) -> None:
    """Nobody else is served while a body is parsed: a million names, the last one said twice, must not take long."""
    names = b",".join(b'"%x":""' % number for number in range(500_000))
    body = b"{" + names + b',"7a11f":""}'
    assert len(body) < LIMIT
    began = time.monotonic()
    target.refuse(target.build(CREATE, body=body), "invalid_argument")
    assert time.monotonic() - began < 20
