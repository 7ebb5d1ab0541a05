"""The table of commands. Each is imported when it runs, so that help and short questions are quick."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cyclopts import App, Group

from oncebox_operate import version

_SET_UP: Final = Group("Set up", sort_key=1)
_RUN: Final = Group("Run", sort_key=2)
_WRITE_AND_ASK: Final = Group("Write and ask", sort_key=3)
_CHECK: Final = Group("Check", sort_key=4)

_HELP: Final = """
Write to another service from an agent and end with exactly one note.

An agent commits its wish to write together with its own data; a worker delivers it under one key. Whatever
crashes, times out or arrives twice, one note results, and you are told the truth: saved, not saved, or not known yet.
"""

_EPILOGUE: Final = """
First steps: `oncebox up`, and in another terminal `oncebox enqueue --help`. Every option has a variable: `--database-url` is
`ONCEBOX_DATABASE_URL`. Exit codes: 0 ok · 1 error · 2 usage · 3 not found · 4 conflict · 5 outcome unknown ·
6 settled as not saved or refused · 7 wait timed out · 8 check failed · 9 dependency unreachable · 130 interrupted.
"""


@dataclass(frozen=True, slots=True)
class Command:
    """One command: how it is typed, where it is, and the first line of its docstring, known without importing it.

    alone: it makes an installation of its own, or needs none; a running `up` is nothing to it.
    """

    path: tuple[str] | tuple[str, str]
    module: str
    function: str
    summary: str
    group: Group | None = None
    alone: bool = False


GROUPS: Final = {
    "migrate": (_SET_UP, "Create, upgrade and inspect the tables of both databases."),
    "token": (_SET_UP, "Who may call the note service."),
    "grant": (_SET_UP, "Who may write into which folder of the note service."),
    "notes": (_RUN, "The note service: the party that receives notes."),
}

COMMANDS: Final = (
    Command(("migrate", "up"), "migrating", "up", "Bring both databases to this version's tables."),
    Command(("migrate", "status"), "migrating", "status", "Say where both databases stand."),
    Command(("migrate", "down"), "migrating", "down", "Remove all tables of Oncebox, with what is in them."),
    Command(("migrate", "sql"), "migrating", "sql", "Print the SQL of a first `migrate up` of the sender."),
    Command(("token", "create"), "tokens", "create", "Make a token and print it, this one time."),
    Command(("token", "list"), "tokens", "list_tokens", "List all tokens, without their secrets."),
    Command(("token", "revoke"), "tokens", "revoke", "Refuse a token from now on."),
    Command(("grant", "add"), "grants", "add", "Let a principal write into a folder."),
    Command(("grant", "list"), "grants", "list_grants", "List grants, revoked ones too."),
    Command(("grant", "revoke"), "grants", "revoke", "Take a grant back."),
    Command(("notes", "serve"), "notes", "serve", "Serve notes over HTTP."),
    Command(("up",), "upping", "up", "Run everything on this machine.", _RUN, alone=True),
    Command(
        ("demo",),
        "demonstrating",
        "demo",
        "Watch notes arrive exactly once while everything breaks.",
        _RUN,
        alone=True,
    ),
    Command(("relay",), "roles", "relay", "Hand due operations to the broker.", _RUN),
    Command(("worker",), "roles", "worker", "Deliver operations to the note service.", _RUN),
    Command(("enqueue",), "writing", "enqueue", "Commit the wish to save a note.", _WRITE_AND_ASK),
    Command(("status",), "asking", "status", "Say what is known of an operation.", _WRITE_AND_ASK),
    Command(("wait",), "asking", "wait", "Wait until an operation is settled.", _WRITE_AND_ASK),
    Command(("show",), "asking", "show", "Show an operation with every call for it.", _WRITE_AND_ASK),
    Command(("list",), "asking", "list_operations", "List operations, newest first.", _WRITE_AND_ASK),
    Command(
        ("retry",), "moving", "retry", "Try an operation again now, not on its schedule.", _WRITE_AND_ASK
    ),
    Command(("cancel",), "moving", "cancel", "Give an operation up.", _WRITE_AND_ASK),
    Command(
        ("reconcile",), "moving", "reconcile", "Ask the receiver now about what is unknown.", _WRITE_AND_ASK
    ),
    Command(("lag",), "lag", "lag", "Say how much is open, and how old it is.", _CHECK),
    Command(("verify",), "verifying", "verify", "Compare the ledger with the receiver's notes.", _CHECK),
    Command(("doctor",), "doctoring", "doctor", "Look whether everything is as it must be.", _CHECK),
    Command(("config",), "configuring", "config", "Show every setting and where it comes from.", _CHECK),
    Command(("env",), "configuring", "env", "Print the current settings as `export` lines.", _CHECK),
    Command(("prune",), "pruning", "prune", "Forget the arguments and calls of old operations.", _RUN),
    Command(
        ("completion",),
        "completing",
        "completion",
        "Print a shell's completion of this command.",
        _SET_UP,
        alone=True,
    ),
    Command(("version",), "versions", "show_version", "Print the version.", _CHECK, alone=True),
)


def build(tokens: Sequence[str] | None = None) -> App:
    """The command line that `tokens` are for: only the command they name is imported. None imports all of them."""
    app = App(
        name="oncebox",
        help=_HELP,
        help_epilogue=_EPILOGUE,
        help_format="markdown",
        version=version.ONCEBOX,
        suppress_keyboard_interrupt=False,
    )
    subs = {
        name: App(name=name, help=text, help_epilogue="", group=group)
        for name, (group, text) in GROUPS.items()
    }
    for sub in subs.values():
        app.command(sub)
    for command in COMMANDS:
        parent = subs[command.path[0]] if len(command.path) > 1 else app
        # A summary given here would take the place of the command's own help.
        named = tokens is None or command == named_by(tokens)
        parent.command(
            f"oncebox_operate.commands.{command.module}:{command.function}",
            name=command.path[-1],
            help=None if named else command.summary,
            help_epilogue="",
            group=command.group,
        )
    return app


def named_by(tokens: Sequence[str]) -> Command | None:
    """The command that a command line names; None when it names none."""
    words = [token for token in tokens if not token.startswith("-")]
    return next((command for command in COMMANDS if tuple(words[: len(command.path)]) == command.path), None)


def variables() -> set[str]:
    """The variables of all options of all commands. Imports every command."""
    app = build()
    found: set[str] = set()
    for command in COMMANDS:
        place = app
        for part in command.path:
            place = place[part]
        for argument in place.assemble_argument_collection(parse_docstring=False):
            found |= set(argument.parameter.env_var or ())
    return found
