"""The log calls of a package, read from its source: which event, at which levels, with which fields."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LEVELS = ("debug", "info", "warning", "error", "exception")


@dataclass
class Logged:
    """One event: everything that any of its calls passes."""

    levels: set[str] = field(default_factory=set[str])
    fields: set[str] = field(default_factory=set[str])


def logged_by(package: Path) -> dict[str, Logged]:
    """All events that the modules of a package log, by name. An event is a string, or a member of `Event`."""
    found: dict[str, Logged] = {}
    for module in sorted(package.rglob("*.py")):
        for scope in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
                for call, level in _log_calls(scope):
                    for name in _names(call.args[0], scope):
                        logged = found.setdefault(name, Logged())
                        logged.levels.add("error" if level == "exception" else level)
                        logged.fields.update(keyword.arg for keyword in call.keywords if keyword.arg)
    return found


def _log_calls(scope: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(scope):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="log" | "_log"), attr=level)) if (
                level in LEVELS
            ):
                yield node, level
            case _:
                pass


def _names(argument: ast.expr, scope: ast.AST) -> set[str]:
    """The event, or each one that a variable of this function may hold."""
    match argument:
        case ast.Constant(value=str(name)):
            return {name}
        case ast.Attribute(value=ast.Name(id="Event"), attr=name):
            return {name.lower()}
        case ast.Name(id=variable):
            values = [
                node.value
                for node in ast.walk(scope)
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == variable
            ]
            return {
                name
                for value in values
                for node in ast.walk(value)
                if isinstance(node, ast.Attribute)
                for name in _names(node, scope)
            }
        case _:
            raise AssertionError(f"an event that cannot be read from the source: {ast.unparse(argument)}")
