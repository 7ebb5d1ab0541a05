"""What the pages tell a reader to type works, step by step, in one installation made by `oncebox up`."""

import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, agrees, blocks
from tests.support import processes
from tests.support.processes import Processes

DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorial.md"
FIRST = "oncebox up\n"
# Some pages have the receiver freeze: here that costs a call less time than the default.
QUICK = ("ONCEBOX_CALL_TIMEOUT_S=2", "ONCEBOX_CONNECT_TIMEOUT_S=1")
# The page on containers has a test of its own, with a Docker engine.
PAGES = [TUTORIAL, *sorted(path for path in (DOCS / "how-to").glob("*.md") if path.name != "containers.md")]
OTHERS = [*(DOCS / "explanation").glob("*.md"), DOCS / "index.md"]
# Between the output of one block and that of the next.
MARK = "\x1e"
DONE = "\x1d"


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path, None, None]:
    """The reader's first terminal: the folder in which `oncebox up` runs."""
    folder = tmp_path_factory.mktemp("reader")
    started = Processes(tmp_path_factory.mktemp("terminal"))
    # `up` leaves word of itself in the user's state folder.
    environment = _reader() | {"XDG_STATE_HOME": str(folder / "state")}
    up = started.start("up", ["env", *_unset(), *QUICK, *FIRST.split()], env=environment, cwd=folder)
    try:
        up.wait_for_log("^Ready after", timeout=90)
        yield folder
        up.send_signal(signal.SIGINT)
        up.wait(60)
    finally:
        started.reap()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_block_of_a_page_does_what_the_page_says(page: Path, installation: Path) -> None:
    """All blocks of a page are typed into one terminal, in order."""
    steps = [block for block in blocks(page) if block.script != FIRST]

    done = processes.run(
        ["env", *_unset(), "bash", "-e", "-c", _typed(steps)], env=_reader(), cwd=installation, timeout=110
    )

    seen = [output.partition(DONE) for output in done.stdout.split(MARK)[1:]]
    wrong = [
        f"{page.name}:{block.line}: the page shows\n{block.expected}\nbut this was seen\n{output}"
        for block, (output, _, _) in zip(steps, seen, strict=False)
        if block.expected is not None and not agrees(block.expected, output)
    ]
    assert wrong == [], "\n\n".join(wrong)
    assert done.returncode == 0, f"{page.name}:{steps[len(seen) - 1].line} failed:\n{seen[-1][0]}"
    assert len(seen) == len(steps)


def test_the_tutorial_begins_with_what_the_installation_was_made_by() -> None:
    assert next(blocks(TUTORIAL)).script == FIRST


def test_what_is_to_be_typed_stands_on_pages_that_are_run() -> None:
    assert [page.name for page in OTHERS if list(blocks(page))] == []


def _typed(steps: list[Block]) -> str:
    parts = [f"printf '{MARK}'\n{block.script}printf '{DONE}'\n" for block in steps]
    # A page that fails with the note service frozen must not take the next ones along.
    thaw = """trap 'test -z "${notes-}" || kill -CONT "$notes"' EXIT\n"""
    return f"exec 2>&1\n{thaw}{''.join(parts)}"


def _reader() -> dict[str, str]:
    """The environment of somebody with the project's `.venv` active."""
    return {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def _unset() -> list[str]:
    """What a reader's terminal does not have: settings of ours, and those that pytest leaves for its children."""
    return [
        part for name in os.environ if name.startswith(("ONCEBOX_", "PYTEST_")) for part in ("--unset", name)
    ]
