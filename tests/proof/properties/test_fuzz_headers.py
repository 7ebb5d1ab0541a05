"""Headers and paths that are wrong: a problem that names them, and nothing recorded."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.proof.properties.budget import tries
from tests.proof.properties.target import (
    AUTHENTICATED,
    CREATE,
    LISTING,
    LOOK_UP,
    REVISE,
    SEAL,
    STATUS,
    WRITING,
    Target,
)

_KEY: Final = re.compile(rb'([A-Za-z0-9][A-Za-z0-9._:-]{0,127})|("[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")')
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_NAME: Final = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}/[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
_MOMENT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:[Zz]|[+-](\d\d):(\d\d))", re.ASCII
)

# Whatever a header can carry: no line ends, they would be other headers.
bytes_of_a_line = st.binary(max_size=40).filter(lambda value: not {*b"\r\n"} & {*value})


def near(right: bytes) -> st.SearchStrategy[bytes]:
    """What is almost `right`: a piece of it replaced by something else."""

    def replaced(start: int, length: int, by: bytes) -> bytes:
        place = start % (len(right) + 1)
        return right[:place] + by + right[place + length :]

    odd = st.one_of(
        st.sampled_from(
            [b" ", b"\t", b'"', b"'", b",", b", ", b";", b"\\", b"/", b"%", b"*", b"=", b"\xa0", b"\xff"]
        ),
        st.sampled_from(["\u200b", "\u0435", "\ufeff", "\u202e", "é"]).map(str.encode),
        bytes_of_a_line,
    )
    return st.builds(replaced, st.integers(0, 99), st.integers(0, 3), odd)


strange_keys = st.one_of(
    bytes_of_a_line,
    near(b"note-7"),
    near(b'"note-7"'),
    st.sampled_from(
        [b"", b" ", b"\t", b'""', b'" "', b"a, b", b'"a", "b"', b'"a";p=1', b'"a\\"b"', b":a:", b"?1"]
    ),
    st.sampled_from(["\u200b", "\u00a0", "\u3000", "note\u200b7"]).map(str.encode),
    st.integers(129, 1_000_000).map(lambda length: b"a" * length),
)


@pytest.mark.parametrize("endpoint", WRITING)
@given(key=strange_keys)
@tries(60)
def test_a_key_of_another_form_is_refused(target: Target, endpoint: bytes, key: bytes) -> None:
    """R44, R2, F7: an empty, blank, listed, endless or disguised key is never taken for none, and never for one."""
    assume(not _KEY.fullmatch(key.strip(b" \t")))
    sent = target.build(endpoint, headers=[(b"Idempotency-Key", key)])
    target.refuse(sent, "idempotency_key_invalid", unparsed=bool(_CONTROL.search(key)))


@pytest.mark.parametrize("endpoint", WRITING)
def test_a_missing_or_repeated_key_is_refused(target: Target, endpoint: bytes) -> None:
    """R2, R44: exactly one line, even where both say the same."""
    target.refuse(target.build(endpoint, without=b"Idempotency-Key"), "idempotency_key_missing")
    for second in (b"note-7", b"note-8", b""):
        twice = [(b"Idempotency-Key", b"note-7"), (b"Idempotency-Key", second)]
        target.refuse(target.build(endpoint, headers=twice), "idempotency_key_invalid")


def escaped(text: bytes, choices: list[int]) -> bytes:
    """Percent-encoded in one of the ways there are; what may stand as it is may also be escaped."""
    written: list[bytes] = []
    for place, byte in enumerate(text):
        plain = bytes([byte])
        match choices[place % len(choices)]:
            case 0 if plain.isalnum():
                written.append(plain)
            case 1:
                written.append(b"%%%02x" % byte)
            case 2:
                written.append(b"%%25%02X" % byte)
            case _:
                written.append(b"%%%02X" % byte)
    return b"".join(written)


@pytest.mark.parametrize("endpoint", [STATUS, SEAL, LOOK_UP])
@given(
    key=st.one_of(st.binary(max_size=30), st.text(max_size=20).map(str.encode), strange_keys).filter(
        lambda key: len(key) < 20_000
    ),
    choices=st.lists(st.integers(0, 3), min_size=1, max_size=8),
)
@tries(60)
def test_a_key_of_another_form_in_a_path_is_refused(
    target: Target, endpoint: bytes, key: bytes, choices: list[int]
) -> None:
    """R44: however it is escaped; decoded once, so that a doubly escaped key is no key."""
    written = escaped(key, choices)
    found = re.fullmatch(rb"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}", unquote_to_bytes(written))
    assume(not found)
    sent = target.build(endpoint).replace(b"note-7", written, 1)
    # An empty key, and one with a slash, are other paths, which do not exist.
    target.refuse(sent, "idempotency_key_invalid", "route_not_found", "method_not_allowed")


@pytest.mark.parametrize("endpoint", AUTHENTICATED)
@given(data=st.data())
@tries(12)
def test_a_token_that_is_not_quite_one_is_refused(
    target: Target, endpoint: bytes, data: st.DataObject
) -> None:
    right = b"Bearer " + target.token
    value = data.draw(
        st.one_of(
            bytes_of_a_line,
            near(right),
            st.sampled_from(
                [target.token, b"Basic " + target.token, b"Bearer", b"Bearer  ", right + b"," + right]
            ),
        )
    )
    # Space around a token says nothing.
    assume(value.split() != right.split() and target.token not in value.replace(b"\xa0", b" ").split()[1:])
    sent = target.build(endpoint, headers=[(b"Authorization", value)])
    target.refuse(sent, "unauthenticated", unparsed=bool(_CONTROL.search(value)))


@pytest.mark.parametrize("endpoint", AUTHENTICATED)
def test_a_missing_or_repeated_token_is_refused(target: Target, endpoint: bytes) -> None:
    right = (b"Authorization", b"Bearer " + target.token)
    target.refuse(target.build(endpoint, without=b"Authorization"), "unauthenticated")
    target.refuse(target.build(endpoint, headers=[right, right]), "unauthenticated")


def is_moment(value: str) -> bool:
    """RFC 3339, judged by other means than the service's."""
    match = _MOMENT.fullmatch(value)
    if not match:
        return False
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    ahead, more = (int(part or 0) for part in match.groups()[6:])
    try:
        found = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        found -= timedelta(hours=ahead, minutes=more)
        found += timedelta(hours=2 * ahead, minutes=2 * more)
    except (ValueError, OverflowError):
        return False
    return ahead < 24 and more < 60


strange_deadlines = st.one_of(
    bytes_of_a_line,
    near(b"2030-01-31T12:00:00.5Z"),
    near(b"2030-01-31T12:00:00+01:00"),
    st.datetimes().map(lambda moment: moment.isoformat().encode()),
    st.datetimes().map(lambda moment: moment.strftime("%a, %d %b %Y %H:%M:%S GMT").encode()),
    st.dates().map(lambda day: day.isoformat().encode()),
    st.integers(-(10**12), 10**12).map(lambda number: b"%d" % number),
    st.sampled_from(
        [b"", b"now", b"P3D", b"2030-02-30T00:00:00Z", b"2030-01-01T24:00:00Z", b"2030-01-01T00:00:60Z"]
    ),
)


@pytest.mark.parametrize("endpoint", [*WRITING, SEAL])
@given(deadline=strange_deadlines)
@tries(40)
def test_a_deadline_that_is_no_moment_is_refused(target: Target, endpoint: bytes, deadline: bytes) -> None:
    assume(not is_moment(deadline.strip(b" \t").decode("latin-1")))
    sent = target.build(endpoint, headers=[(b"Operation-Deadline", deadline)])
    target.refuse(sent, "deadline_invalid", unparsed=bool(_CONTROL.search(deadline)))


@pytest.mark.parametrize("endpoint", [*WRITING, SEAL])
def test_a_missing_repeated_or_too_late_deadline_is_refused(target: Target, endpoint: bytes) -> None:
    target.refuse(target.build(endpoint, without=b"Operation-Deadline"), "deadline_missing")
    soon = (b"Operation-Deadline", target.headers(endpoint)[b"Operation-Deadline"])
    target.refuse(target.build(endpoint, headers=[soon, soon]), "deadline_invalid")
    target.refuse(target.build(endpoint, headers=[(soon[0], b"9998-12-31T00:00:00Z")]), "deadline_invalid")


strange_principals = st.one_of(
    bytes_of_a_line,
    near(b"demo/researcher"),
    st.sampled_from(
        [b"", b"/", b"demo", b"demo/", b"/researcher", b"demo//researcher", b"demo/researcher/x"]
    ),
    st.sampled_from(
        [b"demo%2Fresearcher", b"../demo/researcher", b"DEMO/researcher", b"*/researcher", b"demo/*"]
    ),
    st.sampled_from([b"demo/researcher, demo/researcher", b"demo/" + b"r" * 129, b"other/researcher"]),
)


@pytest.mark.parametrize("endpoint", WRITING)
@given(named=strange_principals)
@tries(40)
def test_nobody_but_the_named_principal_is_acted_for(target: Target, endpoint: bytes, named: bytes) -> None:
    """A delegate that names somebody else, or nobody who can be read, writes nothing for anybody."""
    value = named.strip(b" \t")
    assume(value != b"demo/researcher")
    acting = [(b"Authorization", b"Bearer " + target.delegate), (b"On-Behalf-Of", named)]
    codes = ["invalid_argument", "unauthenticated"]
    if _NAME.fullmatch(value) and value.startswith(b"demo/"):
        # Another principal of the tenant: its own grants decide, and it has none.
        codes = ["folder_not_writable", "note_not_found"]
    target.refuse(target.build(endpoint, headers=acting), *codes, unparsed=bool(_CONTROL.search(named)))


@pytest.mark.parametrize("endpoint", AUTHENTICATED)
def test_acting_for_two_is_refused(target: Target, endpoint: bytes) -> None:
    named = (b"On-Behalf-Of", b"demo/researcher")
    target.refuse(target.build(endpoint, headers=[named, named]), "invalid_argument")


@given(data=st.data())
@tries(40)
def test_a_tag_that_is_not_that_of_the_note_is_refused(target: Target, data: st.DataObject) -> None:
    right = b'"%s"' % target.etag.encode()
    several = st.sampled_from(
        [b"*", b"W/" + right, right + b", " + right, right.strip(b'"'), b'""', b"", b'"']
    )
    tag = data.draw(st.one_of(bytes_of_a_line, near(right), several))
    assume(tag.strip(b" \t\xa0\x85") != right)
    sent = target.build(REVISE, headers=[(b"If-Match", tag)])
    problem = target.refuse(
        sent, "invalid_argument", "precondition_failed", unparsed=bool(_CONTROL.search(tag))
    )
    if problem.get("code") == "precondition_failed":
        assert re.fullmatch(rb'"[\x21\x23-\x7e]+"', tag.strip())


strange_types = st.one_of(
    bytes_of_a_line,
    near(b"application/json"),
    near(b"application/json; charset=utf-8"),
    st.sampled_from(
        [b"", b"text/plain", b"application/json; charset=utf-16", b"application/json, application/json"]
    ),
    st.sampled_from(
        [b"application/x-www-form-urlencoded", b"multipart/form-data", b"application/problem+json"]
    ),
)


@pytest.mark.parametrize("endpoint", [*WRITING, *LISTING])
@given(media_type=strange_types)
@tries(25)
def test_a_body_that_is_not_declared_as_json_is_refused(
    target: Target, endpoint: bytes, media_type: bytes
) -> None:
    plain = re.sub(rb'[\s"\xa0\x85]', b"", media_type).lower().rstrip(b";")
    assume(plain not in (b"application/json", b"application/json;charset=utf-8"))
    sent = target.build(endpoint, headers=[(b"Content-Type", media_type)])
    target.refuse(sent, "unsupported_type", unparsed=bool(_CONTROL.search(media_type)))


@pytest.mark.parametrize("endpoint", [*WRITING, *LISTING])
@pytest.mark.parametrize(
    "coding", [b"gzip", b"deflate", b"br", b"x-unknown", b"identity, gzip", b"gzip, identity"]
)
def test_a_coded_body_is_refused(target: Target, endpoint: bytes, coding: bytes) -> None:
    """It says that the bytes are not what they look like; nothing here decodes them, so nothing reads them."""
    target.refuse(target.build(endpoint, headers=[(b"Content-Encoding", coding)]), "unsupported_type")


@pytest.mark.parametrize("endpoint", AUTHENTICATED)
@pytest.mark.parametrize(
    "query", [b"dry=1", b"dry_run=true", b"tenant=other", b"=", b"%00=%ff", b"operation=note-8"]
)
def test_what_stands_in_a_query_is_not_ignored(target: Target, endpoint: bytes, query: bytes) -> None:
    """R34: who asks for a dry run has no note made, and no later write is a replay of one."""
    method, path = target.target(endpoint)
    asked = path + (b"&" if b"?" in path else b"?") + query
    sent = target.build(endpoint).replace(method + b" " + path, method + b" " + asked, 1)
    target.refuse(sent, "invalid_argument")


@given(
    header=st.sampled_from(
        [b"Call-Id", b"traceparent", b"X-Tenant", b"X-Forwarded-User", b"Cookie", b"Forwarded"]
    ),
    value=bytes_of_a_line,
)
@tries(40)
def test_no_other_header_gives_anything(target: Target, header: bytes, value: bytes) -> None:
    """Authority comes from the token alone: without one, no header makes up for it."""
    sent = target.build(CREATE, headers=[(header, value)], without=b"Authorization")
    target.refuse(sent, "unauthenticated", unparsed=bool(_CONTROL.search(value)))
