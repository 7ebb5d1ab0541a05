"""Make docs/reference/python.md from the docstrings: python scripts/python_reference.py docs/reference/python.md."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import oncebox_outbox
from oncebox_outbox.aio import AsyncOutbox
from oncebox_outbox.testing import OutboxTesting

_INTRODUCTION: Final = """\
<!-- Made by `python scripts/python_reference.py docs/reference/python.md`; do not edit. -->

# The Python interface

`from oncebox_outbox import …`; `AsyncOutbox` is in `oncebox_outbox.aio`, `OutboxTesting` in `oncebox_outbox.testing`.
`Transaction` is a SQLAlchemy `Session` or `Connection`: always the caller's, never committed and never flushed.
How to use it: [in your own transaction](../how-to/enqueue-in-your-own-transaction.md),
[in your tests](../how-to/test-your-agent.md).
"""
_FIRST: Final = (
    "Outbox",
    "Intent",
    "Write",
    "Enqueued",
    "OperationStatus",
    "Receipt",
    "State",
    "Kind",
    "Fault",
)


def text() -> str:
    """The whole page, as Markdown."""
    names = [*_FIRST, *(name for name in oncebox_outbox.__all__ if name not in _FIRST)]
    classes: list[type] = [getattr(oncebox_outbox, name) for name in names]
    classes[1:1] = [AsyncOutbox]
    return "\n".join([_INTRODUCTION, *(line for cls in (*classes, OutboxTesting) for line in _class(cls))])


def _class(cls: type) -> Iterator[str]:
    """A section for a class: what it holds, its docstring, its methods."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    held = [*_fields(tree), *_attributes(tree)]
    yield f"## {cls.__name__}\n"
    yield "\n".join(["```text", _heading(tree), *(f"    {declared}" for declared in held), "```\n"])
    yield from _docstring(tree)
    methods = [
        part
        for part in tree.body
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and not part.name.startswith("_")
    ]
    for part in methods:
        if not _elsewhere(part):
            yield from _function(part)
    if told_elsewhere := [f"`{part.name}`" for part in methods if _elsewhere(part)]:
        yield f"As those of `Outbox`, to be awaited: {', '.join(told_elsewhere)}.\n"


def _elsewhere(part: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return (ast.get_docstring(part) or "").startswith("See `Outbox.")


def _heading(tree: ast.ClassDef) -> str:
    bases = ", ".join(ast.unparse(base) for base in tree.bases)
    return f"class {tree.name}({bases})" if bases else f"class {tree.name}"


def _fields(tree: ast.ClassDef) -> Iterator[str]:
    """Annotated fields, and the members of an enumeration, with the docstring that follows."""
    for part, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        match part:
            case ast.AnnAssign(target=ast.Name(id=name)):
                default = "" if part.value is None else f" = {ast.unparse(part.value)}"
                yield _row(f"{name}: {ast.unparse(part.annotation)}{default}", after)
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield _row(f"{name} = {ast.unparse(part.value)}", after)
            case _:
                pass


def _attributes(tree: ast.ClassDef) -> Iterator[str]:
    """What an exception carries, besides its message."""
    for part in tree.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            types = {argument.arg: argument.annotation for argument in part.args.args}
            for statement in part.body:
                match statement:
                    case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Name(id=given)):
                        annotation = types.get(given)
                        yield _row(f"{name}: {ast.unparse(annotation)}" if annotation else name, None)
                    case ast.AnnAssign(target=ast.Attribute(attr=name)):
                        yield _row(f"{name}: {ast.unparse(statement.annotation)}", None)
                    case _:
                        pass


def _row(declared: str, after: ast.stmt | None) -> str:
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
        return f"{declared}  # {' '.join(str(after.value.value).split())}"
    return declared


def _function(part: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    is_property = any(ast.unparse(decorator) == "property" for decorator in part.decorator_list)
    returns = f" -> {ast.unparse(part.returns)}" if part.returns else ""
    declared = f"{part.name}{returns.replace(' -> ', ': ')}" if is_property else _signature(part, returns)
    yield f"### {part.name}\n"
    yield f"```text\n{declared}\n```\n"
    yield from _docstring(part)


def _signature(part: ast.FunctionDef | ast.AsyncFunctionDef, returns: str) -> str:
    arguments = [_spaced(argument) for argument in ast.unparse(part.args).split(", ")]
    arguments = [argument for argument in arguments if argument not in ("self", "cls")]
    word = "async def" if isinstance(part, ast.AsyncFunctionDef) else "def"
    whole = f"{word} {part.name}({', '.join(arguments)}){returns}"
    if len(whole) <= 100:
        return whole
    return "\n".join([f"{word} {part.name}(", *(f"    {argument}," for argument in arguments), f"){returns}"])


def _spaced(argument: str) -> str:
    return " = ".join(argument.split("=", 1)) if ":" in argument else argument


def _docstring(tree: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    told = ast.get_docstring(tree)
    if told:
        # A line that names fields stays a line of its own.
        yield told.replace("\n", "  \n").replace("  \n  \n", "\n\n") + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text().rstrip() + "\n", encoding="utf-8")
