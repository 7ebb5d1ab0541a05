"""Which folder a path means, and which paths mean none."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncebox_notes import folders


@pytest.mark.parametrize(
    ("sent", "path"),
    [
        ("drafts", "drafts"),
        ("a/b/c/d/e/f/g/h", "a/b/c/d/e/f/g/h"),
        ("dra%66ts", "drafts"),
        ("a%2Fb", "a/b"),
        ("%252e%252e", "%2e%2e"),
        ("re\u0301sume\u0301", "r\u00e9sum\u00e9"),
        ("100%25", "100%"),
        ("...", "..."),
    ],
)
def test_a_path_is_decoded_once_and_normalised(sent: str, path: str) -> None:
    assert folders.resolve(sent) == path


@pytest.mark.parametrize(
    "sent",
    ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "%2e%2e", "a/%2E", "a%2F..%2Fb", "a\\b", "a%5Cb",
     "\x00", "a%00", "a\nb", "%", "%zz", "%ff", "%ed%a0%80", " ", "a/ /b", "a/b/c/d/e/f/g/h/i", "x" * 513],
)  # fmt: skip
def test_a_path_that_is_no_plain_one_is_refused(sent: str) -> None:
    with pytest.raises(folders.InvalidFolderError):
        folders.resolve(sent)


@given(st.text(st.sampled_from([*"ab./\\%25eEfF", "\u0301", "\x00"]), max_size=20))
def test_what_is_accepted_has_no_way_out(sent: str) -> None:
    """Whatever escapes it was made of, an accepted path is normalised and stays below the tenant."""
    try:
        path = folders.resolve(sent)
    except folders.InvalidFolderError:
        return
    assert path == unicodedata.normalize("NFC", path)
    assert not {"", ".", ".."} & set(path.split("/"))
    assert "\\" not in path
    assert "\x00" not in path
