"""Settings that cannot work are named, all at once, and the token shows nowhere."""

from dataclasses import asdict

import pytest
from pydantic import SecretStr

from oncebox_destinations.settings import NoteServiceSettings, WrongSettings
from tests.unit.destinations.samples import TOKEN, settings


def test_the_token_shows_in_no_representation() -> None:
    value = settings("http://127.0.0.1:8320")
    assert TOKEN not in f"{value!r} {value} {asdict(value)}"


@pytest.mark.parametrize(
    ("url", "path", "expected"),
    [
        ("http://127.0.0.1:8320", "/v1/folders", "http://127.0.0.1:8320/v1/folders"),
        ("https://notes.test/behind/", "/v1/folders", "https://notes.test/behind/v1/folders"),
    ],
)
def test_a_base_url_may_have_a_path(url: str, path: str, expected: str) -> None:
    assert settings(url).url(path) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "notes.test",
        "ftp://notes.test",
        "http://",
        "http://[",
        "http://x:99999",
        "http://x/?a=1",
        "http://x/#a",
    ],
)
def test_a_base_url_that_cannot_work_is_named(url: str) -> None:
    with pytest.raises(WrongSettings, match="base_url"):
        settings(url)


def test_a_password_in_the_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(WrongSettings) as caught:
        settings("http://user:hunter2@notes.test")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("token", ["", " ", "a b", "a\r\nX-Evil: 1", "tökén"])
def test_a_token_that_cannot_stand_in_a_header_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(WrongSettings) as caught:
        NoteServiceSettings("http://notes.test", SecretStr(token))
    assert "token" in str(caught.value)
    assert not token.strip() or token not in str(caught.value)


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(WrongSettings) as caught:
        NoteServiceSettings(
            "x",
            SecretStr(""),
            call_timeout_s=1.0,
            connect_timeout_s=2.0,
            max_connections=0,
            response_bytes=-1,
        )
    for name in ("base_url", "token", "connect_timeout_s", "max_connections", "response_bytes"):
        assert name in str(caught.value)
