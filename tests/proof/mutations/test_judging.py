"""The judge is no rubber stamp: what shows nothing is an error, and a fault that a test does not see is said."""

import dataclasses
import subprocess
import sys
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from tests.proof.mutations import __main__ as command
from tests.proof.mutations.catalogue import ROOT, Edit, Mutation
from tests.proof.mutations.copies import Copy, copy_of, not_loaded
from tests.proof.mutations.databases import Databases
from tests.proof.mutations.judging import Bench, Judged, Verdict, judge
from tests.proof.mutations.warm_python import Request, WarmPython

RULES = "outbox/oncebox_outbox/rules.py"
TEST = "tests/unit/outbox/test_rules.py::test_a_receipt_without_a_receipt_proves_nothing"
# The line that this test is about, in a way that it sees, and in a way that it does not.
SEEN = Edit(
    RULES, "if receipt is None or receipt.operation_id", "if receipt is not None and receipt.operation_id"
)
NOT_SEEN = Edit(RULES, "receipt.operation_id != operation_id:", "receipt.operation_id == operation_id:")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Generator[Bench]:
    """A bench for faults whose tests need no database."""
    python = WarmPython()
    copy = copy_of(ROOT, tmp_path_factory.mktemp("copy"))
    yield Bench(copy, python, Databases("postgresql://nowhere/none", {}))
    python.close()


def judged(bench: Bench, *edits: Edit, tests: tuple[str, ...] = (TEST,)) -> Judged:
    return judge(Mutation("name", "fault", edits, tests), bench)


def test_a_fault_that_its_test_sees_is_load_bearing_and_leaves_nothing_behind(bench: Bench) -> None:
    result = judged(bench, SEEN)

    assert (result.verdict, result.why) == (Verdict.LOAD_BEARING, "")
    assert "AttributeError" in result.saw[TEST]
    assert (bench.copy.root / RULES).read_bytes() == (ROOT / RULES).read_bytes()


def test_a_fault_that_its_test_does_not_see_has_survived(bench: Bench) -> None:
    result = judged(bench, NOT_SEEN)

    assert (result.verdict, result.why) == (Verdict.SURVIVED, f"{TEST} does not see it")


def test_each_of_the_tests_has_to_see_it(bench: Bench) -> None:
    blind = "tests/unit/outbox/test_rules.py::test_a_receipt_for_other_arguments_is_a_conflict"

    assert judged(bench, SEEN, tests=(TEST, blind)).verdict is Verdict.SURVIVED


def test_one_variant_of_a_test_suffices_unless_one_is_named(bench: Bench) -> None:
    test = "tests/unit/outbox/test_rules.py::test_answers_that_say_not_executed_spend_no_budget"
    of_one = Edit(
        RULES,
        "return _again(entry, kind, delay_s, verdict=True)\n",
        "return _again(entry, kind, 1.0, verdict=True)\n",
    )

    assert judged(bench, of_one, tests=(test,)).verdict is Verdict.LOAD_BEARING
    assert judged(bench, of_one, tests=(f"{test}[not_executed]",)).verdict is Verdict.LOAD_BEARING
    assert judged(bench, of_one, tests=(f"{test}[not_sent]",)).verdict is Verdict.SURVIVED


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        pytest.param(Edit(RULES, "def checked(", "def checked_("), "cannot import name", id="import"),
        pytest.param(Edit(RULES, "def checked(", "def checked(:"), "SyntaxError", id="syntax"),
        pytest.param(Edit(RULES, "receipt = answer.receipt", "receipt = gone.receipt"), "NameError", id="name"),
    ],
)  # fmt: skip
def test_a_fault_that_is_no_program_shows_nothing(bench: Bench, edit: Edit, said: str) -> None:
    result = judged(bench, edit)

    assert result.verdict is Verdict.ERROR
    assert said in result.why


def test_a_fault_that_no_process_runs_shows_nothing(bench: Bench) -> None:
    elsewhere = Edit("operate/oncebox_operate/version.py", "= _installed()", '= "unknown"')

    result = judged(bench, SEEN, elsewhere)

    assert (result.verdict, result.why) == (
        Verdict.ERROR,
        f"no process ran the changed {elsewhere.file}",
    )


def test_a_test_that_fails_without_the_fault_shows_nothing(bench: Bench) -> None:
    test = _add(bench, "def test_it() -> None:\n    assert False, 'always'\n")

    result = judged(bench, SEEN, tests=(TEST, test))

    assert result.verdict is Verdict.ERROR
    assert f"{test} without the fault: failed" in result.why


def test_a_test_that_fails_in_a_fixture_shows_nothing(bench: Bench) -> None:
    fixture = "import pytest\n\n@pytest.fixture\ndef broken() -> None:\n    raise OSError('no server')\n\n"
    test = _add(bench, f"{fixture}def test_it(broken: None) -> None:\n    pass\n")

    result = judged(bench, SEEN, tests=(TEST, test))

    assert result.verdict is Verdict.ERROR
    assert "no server" in result.why


def test_a_statement_that_is_no_sql_shows_nothing(bench: Bench) -> None:
    error = (
        "import psycopg\n\ndef test_it() -> None:\n    raise psycopg.errors.UndefinedColumn('no column')\n"
    )
    test = _add(bench, error)

    result = judged(bench, SEEN, tests=(TEST, test))

    assert result.verdict is Verdict.ERROR
    assert "no column" in result.why


def test_a_test_that_is_skipped_sees_nothing(bench: Bench) -> None:
    test = _add(bench, "import pytest\n\ndef test_it() -> None:\n    pytest.skip('not here')\n")

    assert judged(bench, SEEN, tests=(TEST, test)).verdict is Verdict.SURVIVED


def test_a_fault_that_has_no_place_any_more_shows_nothing(bench: Bench) -> None:
    result = judged(bench, Edit(RULES, "a line that was there once", "another"))

    assert result.verdict is Verdict.ERROR
    assert "occurs 0 times" in result.why


def test_a_test_that_is_not_there_shows_nothing(bench: Bench) -> None:
    assert judged(bench, SEEN, tests=(f"{TEST}_at_all",)).verdict is Verdict.ERROR


def test_another_trees_code_shows_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = Copy.environment

    def of_the_working_tree(self: Copy, database_url: str) -> Mapping[str, str]:
        return environment(dataclasses.replace(self, root=ROOT), database_url)

    monkeypatch.setattr(Copy, "environment", of_the_working_tree)

    result = judged(bench, SEEN)

    assert result.verdict is Verdict.ERROR
    assert f"oncebox_outbox from {ROOT}" in result.why


@pytest.mark.parametrize(
    ("file", "line", "command"),
    [
        (
            "notes/oncebox_notes/settings.py",
            "TITLE_LIMIT: Final = 300",
            ["python", "-m", "oncebox_notes", "--help"],
        ),
        ("operate/oncebox_operate/main.py", "def main() -> None:", ["oncebox", "--help"]),
    ],
)
def test_processes_that_a_test_starts_run_the_copys_code_too(
    bench: Bench, tmp_path: Path, file: str, line: str, command: list[str]
) -> None:
    """Also the installed command, which by itself finds the working tree."""
    program, *arguments = command
    fault = Mutation("name", "fault", (Edit(file, line, f"{line}  # a fault"),), (TEST,))
    with bench.copy.mutated(fault, tmp_path / "loaded"):
        subprocess.run(
            [Path(sys.executable).with_name(program), *arguments],
            cwd=tmp_path,
            env=bench.copy.environment("postgresql://nowhere/none"),
            capture_output=True,
            check=True,
        )

    assert not_loaded(fault, tmp_path / "loaded") == []


def test_a_pytest_that_hangs_is_ended_and_the_next_one_runs(bench: Bench, tmp_path: Path) -> None:
    slow = _add(bench, "import time\n\ndef test_it() -> None:\n    time.sleep(60)\n")
    environment = {**bench.copy.environment(""), "MUTATION_RECORD": str(tmp_path / "record")}
    request = Request(str(bench.copy.root), environment, ["-q", slow], str(tmp_path / "log"))

    assert bench.python.run(request, timeout_s=1.0) is None
    assert judged(bench, SEEN).verdict is Verdict.LOAD_BEARING


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([Verdict.LOAD_BEARING], 0),
        ([Verdict.LOAD_BEARING, Verdict.ERROR], 1),
        ([Verdict.SURVIVED, Verdict.ERROR], 8),
    ],
)
def test_the_exit_code_says_the_worst(
    verdicts: list[Verdict], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = [Judged(f"m{number}", verdict, "why", {}, 0.1) for number, verdict in enumerate(verdicts)]
    monkeypatch.setattr(command, "judge_all", lambda *_: results)

    assert command.main([]) == code
    assert command.main(["--only", "no-such-mutation"]) == 2
    assert "no mutation no-such-mutation" in capsys.readouterr().err


def _add(bench: Bench, text: str) -> str:
    """Add a test file to the copy; the node id of its test."""
    name = f"tests/unit/test_added_{len(list((bench.copy.root / 'tests/unit').glob('test_added_*')))}.py"
    (bench.copy.root / name).write_text(text, encoding="utf-8")
    return f"{name}::test_it"
