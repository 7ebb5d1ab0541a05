"""`oncebox` on a command line of anything: done or refused, in words that can be read, and never a fault of ours."""

import contextlib
import io
import json
import os
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncebox_operate import running
from oncebox_operate.exit_codes import ExitCode
from tests.integration.outbox import scenes
from tests.integration.outbox.scenes import Sender
from tests.proof.properties.budget import tries

STORED: Final = "select count(*) from oncebox.operation"
RIGHT: Final = {
    "--operation-id": "note-7",
    "--folder": "drafts",
    "--title": "Finding 7",
    "--text": "Reef B",
}
MORE: Final = (
    *(
        "--format",
        "--kind",
        "--note-id",
        "--if-match",
        "--run",
        "--step",
        "--purpose",
        "--tenant",
        "--principal",
    ),
    *("--destination", "--deadline", "--ordering-key", "--supersedes", "--text-file", "--unknown"),
)
ASKING: Final = (
    *(
        ("status",),
        ("show",),
        ("wait", "--timeout", "0.1"),
        ("cancel",),
        ("retry",),
        ("reconcile",),
        ("explain",),
    ),
    *(("intent", "show"), ("list", "--state"), ("list", "--run"), ("list", "--limit"), ("lag", "--max-age")),
    *(("prune", "--older-than"), ("destination", "pause"), ("config",), ("help",)),
)
# What an argument can hold: no NUL, and for bytes that are no UTF-8 what Python makes of them.
words = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12),
    st.binary(max_size=8).filter(lambda raw: 0 not in raw).map(os.fsdecode),
    st.sampled_from(
        ["", " ", "-", "--", "-1", "=", "\u200b", "72h", "-72h", "900d", "1e400s", "nan", "inf", "10s5"]
    ),
    st.sampled_from(
        ["2030-01-01", "2030-01-01T00:00:00", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"]
    ),
    st.sampled_from(
        ["--json", "--help", "--version", "--no-json", "@file", "$HOME", "%s", "{}", "\x1b[2J", "\u202e"]
    ),
    st.sampled_from([129, 100_000]).map(lambda length: "x" * length),
)


@pytest.fixture(scope="module")
def sender(sender_database: str) -> Generator[Sender, None, None]:
    with scenes.sender(sender_database) as parties:
        yield parties


@pytest.fixture(autouse=True, scope="module")
def environment(sender_database: str) -> Generator[None, None, None]:
    """The commands know this database and nothing else, and no `up` that may run here."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("ONCEBOX_")]:
            patch.delenv(name)
        patch.setenv("ONCEBOX_DATABASE_URL", sender_database)
        yield


def run(tokens: Sequence[str], stdin: bytes = b"") -> tuple[ExitCode, str, str]:
    """Exit code, stdout, stderr; as strict about what can be written as a terminal in UTF-8."""
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=how) for how in ("strict", "backslashreplace")
    )
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = running.run(tokens)
    read = []
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
        read.append(stream.read())
    return ExitCode(code), read[0], read[1]


def told(code: ExitCode, out: str, err: str) -> dict[str, Any]:
    """The error that a refused command prints as JSON."""
    said = f"{code}: {out[-500:]} {err[-500:]}"
    assert "Traceback" not in err, said
    error: dict[str, Any] = json.loads(out.splitlines()[-1])["error"]
    assert error["kind"] != "internal", said
    assert (error["exit_code"], bool(error["message"])) == (code, True), said
    return error


def given_option(name: str, value: str, glued: bool) -> list[str]:
    return [f"{name}={value}"] if glued else [name, value]


@given(
    changed=st.dictionaries(st.sampled_from([*RIGHT, *MORE]), words, min_size=1, max_size=3),
    dropped=st.sampled_from([None, None, *RIGHT]),
    glued=st.booleans(),
    stdin=st.binary(max_size=20),
)
@tries(120)
def test_an_enqueue_of_anything_is_committed_or_refused(
    sender: Sender, changed: dict[str, str], dropped: str | None, glued: bool, stdin: bytes
) -> None:
    """F7, F48: 2 for whatever is wrong, with every fault, and nothing written; 0 only with a row to show for it."""
    options = {name: value for name, value in (RIGHT | changed).items() if name != dropped}
    tokens = [token for name, value in options.items() for token in given_option(name, value, glued)]
    before = sender.scalar(STORED)
    code, out, err = run(["enqueue", "--json", *tokens], stdin)
    stored = sender.scalar(STORED) - before
    if code == ExitCode.OK:
        if out.lstrip().startswith("{"):
            assert json.loads(out)["created"] == bool(stored)
        else:
            # `--help` and `--version` among the words.
            assert stored == 0
        return
    assert stored == 0
    assert code in (ExitCode.USAGE, ExitCode.CONFLICT, ExitCode.NOT_FOUND), f"{code}: {err[-500:]}"
    told(code, out, err)


@pytest.mark.parametrize("command", ASKING, ids=" ".join)
@given(word=words)
@tries(15)
def test_a_question_about_anything_is_answered_or_refused(
    sender: Sender, command: tuple[str, ...], word: str
) -> None:
    code, out, err = run([*command, word, "--json"])
    assert "Traceback" not in err
    assert code in set(ExitCode) - {ExitCode.UNREACHABLE, ExitCode.INTERRUPTED}, err[-500:]
    if code and '"error"' in out:
        told(code, out, err)
    else:
        assert code != ExitCode.ERROR, err[-500:]


@given(
    tokens=st.lists(
        st.one_of(words, st.sampled_from(["status", "list", "enqueue", "migrate", "config"])), max_size=4
    )
)
@tries(60)
def test_a_command_line_of_anything_is_no_fault_of_ours(sender: Sender, tokens: list[str]) -> None:
    before = sender.scalar(STORED)
    code, out, err = run([*tokens, "--json"])
    assert "Traceback" not in err
    assert "This is a fault of Oncebox" not in err
    assert code in set(ExitCode) - {ExitCode.INTERRUPTED}, err[-500:]
    assert sender.scalar(STORED) == before
    assert out or err or not code


def test_an_argument_that_is_no_text_is_told_back_as_json(tmp_path: Path) -> None:
    """Found by these tests: a path with bytes that are no UTF-8 ended in a traceback while it was being told."""
    code, out, err = run(
        ["enqueue", "--json", "--operation-id", "a", "--text-file", str(tmp_path / "\udcff")]
    )
    assert (code, told(code, out, err)["kind"]) == (2, "usage")
    assert "\\udcff" in err
