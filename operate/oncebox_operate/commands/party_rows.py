"""What `token` and `grant` share: the options that say whose, and the tables of what the note service answers."""

from collections.abc import Callable, Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.console import RenderableType
from rich.table import Table

from oncebox_operate.options import WHOSE
from oncebox_operate.output import Output, plain

Row = dict[str, object]
"""One object of the note service's answer; its keys are in the reference."""

Tenant = Annotated[
    str, Parameter(name="--tenant", env_var="ONCEBOX_TENANT", group=WHOSE, help="Whose it is.")
]
Principal = Annotated[
    str,
    Parameter(
        name="--principal", env_var="ONCEBOX_PRINCIPAL", group=WHOSE, help="Whose it is, in the tenant."
    ),
]


def whose(row: Row) -> str:
    """The party of a row, `tenant/principal`."""
    return f"{row['tenant']}/{row['principal']}"


def print_list(
    output: Output,
    rows: Sequence[Row],
    columns: tuple[str, ...],
    cells: Callable[[Row], tuple[object, ...]],
    empty: str,
) -> None:
    """A line a row; `empty` says what to do when there is none."""
    if rows:
        output.lines(rows, lambda: _table(rows, columns, cells))
    else:
        output.note(empty)


def _table(
    rows: Sequence[Row], columns: tuple[str, ...], cells: Callable[[Row], tuple[object, ...]]
) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, no_wrap=True)
    for row in rows:
        table.add_row(*(plain(str(cell)) for cell in cells(row)))
    return table
