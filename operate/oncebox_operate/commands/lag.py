"""`lag`: how much is open, and how old it is. Exact with no worker and no broker alive."""

import threading
from typing import Annotated, Final

from cyclopts import Parameter
from rich.live import Live
from sqlalchemy import Engine

from oncebox_operate import options, sender, shapes, shaping, views
from oncebox_operate.durations import shown
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.options import DatabaseUrl
from oncebox_operate.output import AS_TEXT, Output, stdout
from oncebox_outbox import insights

WATCH_S: Final = 1.0
"""Seconds between two looks of `--watch`."""


def lag(
    *,
    watch: Annotated[
        bool,
        Parameter(
            name="--watch",
            env_var="ONCEBOX_LAG_WATCH",
            show_default=False,
            negative="",
            help="Look again every second until Ctrl-C.",
        ),
    ] = False,
    max_age: Annotated[
        float | None,
        Parameter(
            name="--max-age",
            env_var="ONCEBOX_LAG_MAX_AGE",
            converter=options.to_seconds,
            help="Exit with 8 when an open operation is older than this: 60s, 5m.",
        ),
    ] = None,
    database_url: DatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Say how much is open, and how old it is.

    The age counts from the enqueue, whatever the operation waits for. With `--watch` and `--max-age` it ends at the
    first look that finds something too old.

    * `oncebox lag`
    * `oncebox lag --max-age 60s` (for an alarm: exit 8)
    * `oncebox lag --watch`
    """
    with sender.engine(options.sender_server(database_url)) as engine:
        seen = _watch(engine, max_age, output) if watch else _look(engine, max_age)
    if not watch:
        _print(seen, output)
    if seen["violations"]:
        kinds = ", ".join(f"{kind} {count}" for kind, count in seen["violations"].items())
        output.note(f"Recorded contradictions: {kinds}. Look into them: oncebox verify", "bold red")
    if not seen["ok"]:
        output.note(
            f"The oldest is older than {shown(max_age or 0.0)}. Which: oncebox list --state {_oldest(seen)}"
        )
        return ExitCode.CHECK_FAILED
    return ExitCode.OK


def _watch(engine: Engine, max_age: float | None, output: Output) -> shapes.Lag:
    """Look again and again; ends with the first look that is not ok, or by Ctrl-C."""
    pause = threading.Event()
    seen = _look(engine, max_age)
    if output.json or not stdout().is_terminal:
        _print(seen, output)
        while seen["ok"]:
            pause.wait(WATCH_S)
            seen = _look(engine, max_age)
            _print(seen, output)
        return seen
    with Live(views.lag(seen), console=stdout(), auto_refresh=False) as live:
        while seen["ok"]:
            pause.wait(WATCH_S)
            seen = _look(engine, max_age)
            live.update(views.lag(seen), refresh=True)
    return seen


def _oldest(seen: shapes.Lag) -> str:
    ages = {
        state: depth["oldest_age_s"]
        for destination in seen["destinations"]
        for state, depth in destination["states"].items()
    }
    return max(ages, key=lambda state: ages[state])


def _print(seen: shapes.Lag, output: Output) -> None:
    output.data(seen, lambda: views.lag(seen))


def _look(engine: Engine, max_age: float | None) -> shapes.Lag:
    with engine.connect() as connection:
        return shaping.lag(insights.lag(connection), max_age)
