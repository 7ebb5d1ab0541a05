"""The table of commands: what help says without importing, and that every option has a variable."""

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from cyclopts import App

from oncebox_models.states import State
from oncebox_operate import app
from oncebox_operate.app import COMMANDS, Command
from oncebox_operate.commands.asking import StateName


def function_of(command: Command) -> Any:
    return getattr(importlib.import_module(f"oncebox_operate.commands.{command.module}"), command.function)


def name_of(command: Command) -> str:
    return "-".join(command.path)


def options_of(command: Command) -> Iterator[Any]:
    found: App = app.build()
    for part in command.path:
        found = found[part]
    yield from (
        argument
        for argument in found.assemble_argument_collection(parse_docstring=False)
        if argument.names and argument.names[0].startswith("-") and not argument.children
    )


@pytest.mark.parametrize("command", COMMANDS, ids=name_of)
def test_the_summary_in_the_list_is_the_first_line_of_the_commands_own_help(command: Command) -> None:
    assert function_of(command).__doc__.splitlines()[0] == command.summary


@pytest.mark.parametrize("command", COMMANDS, ids=name_of)
def test_every_option_has_a_variable_and_says_what_it_is_for(command: Command) -> None:
    for option in options_of(command):
        variables = option.parameter.env_var
        assert len(variables) == 1, option.names
        assert re.fullmatch(r"ONCEBOX_[A-Z_]+", variables[0]), option.names
        assert option.parameter.help or option.parameter.show is False, option.names


def test_a_variable_means_the_same_wherever_it_is_read() -> None:
    meanings: dict[str, set[str]] = {}
    for command in COMMANDS:
        for option in options_of(command):
            meanings.setdefault(option.parameter.env_var[0], set()).add(option.names[0])
    assert {variable: names for variable, names in meanings.items() if len(names) > 1} == {}


@pytest.mark.parametrize(
    "command",
    [c for c in COMMANDS if c.path not in {("relay",), ("worker",), ("notes", "serve")}],
    ids=name_of,
)
def test_every_command_that_answers_can_answer_in_json(command: Command) -> None:
    assert "--json" in {name for option in options_of(command) for name in option.names}


def test_the_states_that_can_be_listed_are_all_states() -> None:
    assert set(get_args(StateName)) == set(State)


def test_help_is_quick_it_imports_neither_database_nor_broker_libraries() -> None:
    code = (
        "import sys\nfrom oncebox_operate import running\nassert running.run(['--help']) == 0\n"
        "print([name for name in ('sqlalchemy', 'pydantic', 'psycopg', 'celery', 'httpx2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_receivers_ledger_is_read_by_code_that_imports_nothing_of_ours() -> None:
    code = (
        "import sys\nimport oncebox_operate.ledger\n"
        "print(sorted(name for name in sys.modules if name.startswith('oncebox')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['oncebox_operate', 'oncebox_operate.ledger']"
