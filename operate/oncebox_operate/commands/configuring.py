"""`config` and `env`: what the settings are here, for people and for a shell."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from oncebox_operate import app, configuration, shapes
from oncebox_operate.configuration import Given, Origin
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.options import BrokerUrl, DatabaseUrl, NotesDatabaseUrl, NotesToken, NotesUrl
from oncebox_operate.output import AS_TEXT, Output, json_line, plain
from oncebox_operate.settings_catalogue import Setting, settings
from oncebox_operate.up import state_file
from oncebox_operate.up.state_file import RunningUp

_DATABASE: Final = "ONCEBOX_DATABASE_URL"
_STYLES = {
    Origin.OPTION: "bold green",
    Origin.VARIABLE: "green",
    Origin.STATE_FILE: "cyan",
    Origin.DEFAULT: "dim",
    Origin.UNSET: "yellow",
}


def config(
    *,
    database_url: DatabaseUrl = None,
    notes_database_url: NotesDatabaseUrl = None,
    broker_url: BrokerUrl = None,
    notes_url: NotesUrl = None,
    token: NotesToken = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Show every setting and where it comes from.

    An option wins over its variable, that over the state file of a running `up`, that over the default. Of a secret
    it says only whether it is set. A variable `ONCEBOX_…` that nothing reads is named: it may be misspelt.

    * `oncebox config`
    * `oncebox config --json | jq 'select(.origin != "default")'`
    """
    options = _options(database_url, notes_database_url, broker_url, notes_url, token)
    found = _given(options)
    output.lines([_shape(one) for one in found], lambda: _table(found))
    for name, meant in _unread().items():
        suggestion = "" if meant is None else f" Did you mean {meant}?"
        output.note(f"{name} is set, and nothing reads it.{suggestion}", "yellow")
    return ExitCode.OK


def env(
    *,
    show_secrets: Annotated[
        bool,
        Parameter(
            name="--show-secrets",
            env_var="ONCEBOX_ENV_SHOW_SECRETS",
            show_default=False,
            negative="",
            help="The token and addresses with a password, too.",
        ),
    ] = False,
    database_url: DatabaseUrl = None,
    notes_database_url: NotesDatabaseUrl = None,
    broker_url: BrokerUrl = None,
    notes_url: NotesUrl = None,
    token: NotesToken = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Print the current settings as `export` lines.

    Those that are set here by an option, a variable or the state file of a running `up`; defaults are left out. A
    secret is a comment that says so, unless `--show-secrets` is given.

    * `oncebox env`
    * `eval "$(oncebox env --show-secrets)"` (a shell, a notebook or an IDE that needs the same settings)
    """
    options = _options(database_url, notes_database_url, broker_url, notes_url, token)
    found = [one for one in _given(options) if one.origin not in (Origin.DEFAULT, Origin.UNSET)]
    withheld = [one.setting.variable for one in found if one.secret and not show_secrets]
    printed = {one.setting.variable: one.value or "" for one in found if one.setting.variable not in withheld}
    value: shapes.Environment = {"variables": printed, "withheld": withheld}
    # As they are: a shell reads them.
    sys.stdout.write(json_line(value) if output.json else _exports(value))
    sys.stdout.flush()
    if not found:
        output.note("No setting is set here. Which there are: oncebox config")
    return ExitCode.OK


def _options(
    database_url: str | None,
    notes_database_url: str | None,
    broker_url: str | None,
    notes_url: str | None,
    token: str | None,
) -> dict[str, str | None]:
    return {
        "ONCEBOX_DATABASE_URL": database_url,
        "ONCEBOX_NOTES_DATABASE_URL": notes_database_url,
        "ONCEBOX_BROKER_URL": broker_url,
        "ONCEBOX_NOTES_URL": notes_url,
        "ONCEBOX_TOKEN": token,
    }


def _given(options: Mapping[str, str | None]) -> list[Given]:
    running = state_file.find(Path.cwd(), os.environ)
    told = running.places.variables() if isinstance(running, RunningUp) else {}
    # Whoever names another database means another installation: then nothing of the running one is used.
    if os.environ.get(_DATABASE) != told.get(_DATABASE):
        told = {}
    return configuration.given(settings(), os.environ, options, told)


def _unread() -> dict[str, str | None]:
    """Asked of all commands, and only when there is a variable that is no setting: that takes a moment."""
    catalogued = {setting.variable for setting in settings()}
    if not configuration.unread(os.environ, catalogued):
        return {}
    return configuration.unread(os.environ, catalogued | app.variables())


def _shape(one: Given) -> shapes.Configured:
    setting: Setting = one.setting
    return {
        "variable": setting.variable,
        "value": one.shown,
        "origin": str(one.origin),
        "default": setting.default,
        "unit": setting.unit or None,
        "secret": one.secret,
        "read_by": setting.read_by,
        "about": setting.about,
    }


def _table(found: Sequence[Given]) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("setting", "value", "from", "default", "unit", "what it is"):
        table.add_column(column, no_wrap=column in ("setting", "from"), overflow="fold")
    for one in found:
        setting = one.setting
        value = "not set" if one.shown is None else plain(one.shown)
        table.add_row(
            setting.variable,
            Text(value, _STYLES[one.origin]),
            Text(str(one.origin), "dim"),
            setting.default or "",
            setting.unit,
            Text(setting.about, "dim"),
        )
    return table


def _exports(value: shapes.Environment) -> str:
    lines = [f"export {name}={shlex.quote(text)}" for name, text in value["variables"].items()]
    lines += [f"# {name} is a secret: oncebox env --show-secrets" for name in value["withheld"]]
    return "".join(f"{line}\n" for line in lines)
