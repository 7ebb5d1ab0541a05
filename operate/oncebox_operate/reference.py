"""The reference of the command line, made from the commands themselves: `python -m oncebox_operate.reference FILE`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, get_args, get_type_hints

from oncebox_operate import app, shapes
from oncebox_operate.exit_codes import ExitCode

_INTRODUCTION: Final = """\
<!-- Made by `python -m oncebox_operate.reference docs/reference/cli.md`; do not edit. -->

# The `oncebox` command

Data goes to stdout; progress and messages go to stderr. `--json` prints one object, and for lists one object a line
(JSON Lines). A failure under `--json` prints `{"error": {…}}` on stdout, too. Every option can be given as a variable;
an option wins over its variable, and a blank variable counts as one that is not set. `NO_COLOR` is honoured, and
there is no colour where the output is not a terminal. `ONCEBOX_TRACEBACK=1` adds a traceback to an error, for
developers.

An operation is named by its `operation_id` or by our UUID, narrowed by `--tenant`, `--principal` and
`--destination`. Several matches are an error (exit 2) that lists them.

## Exit codes
"""

_JSON: Final = """\
## JSON

These keys are stable; new ones may be added. Times are RFC 3339 in UTC. `token` and `grant` print what the note
service answers: `token create` has `id`, `token`, `tenant`, `principal`, `delegate`, `tenants`, `created_at`;
`token list` the same without `token` and with `revoked_at`; `token revoke` `id`, `tenant`, `principal`, `revoked_at`;
`grant add|list|revoke` `id`, `tenant`, `principal`, `folder`, `granted_at`, and `created` or `revoked_at`.
`notes serve` prints `{"event": "ready", "url": …}` once it accepts connections.
"""

_SHAPES: Final = (
    ("`status`, `wait`, `list`", shapes.Operation),
    ("`receipt`, in `status`, `wait`, `list`, `show`, `enqueue`", shapes.Receipt),
    ("`show`", shapes.Timeline),
    ("`show`: an item of `calls`", shapes.Call),
    ("`enqueue`", shapes.Enqueued),
    ("`retry`", shapes.Retried),
    ("`cancel`", shapes.Cancelled),
    ("`reconcile`", shapes.Reconciled),
    ("`lag`", shapes.Lag),
    ("`lag`: an item of `destinations`", shapes.DestinationLag),
    ("`verify`", shapes.Verified),
    ("`verify`: an item of `problems`", shapes.Problem),
    ("`up`", shapes.Up),
    ("`demo`", shapes.Demo),
    ("`demo --exercise`", shapes.Exercise),
    ("`demo --exercise`: an item of `boundaries`", shapes.Boundary),
    ("`doctor`", shapes.Examined),
    ("`doctor`: an item of `checks`", shapes.Check),
    ("`config`: a line a setting", shapes.Configured),
    ("`env`", shapes.Environment),
    ("`prune`", shapes.Pruned),
    ("`completion`", shapes.Completion),
    ("`migrate up`, `down`, `status`: a line a database", shapes.Migrated),
    ("`migrate sql`", shapes.MigrationSql),
    ("`version`", shapes.Version),
    ("`error`, of every command", shapes.Error),
)
_WITH_AN_OPERATION: Final = (shapes.Timeline, shapes.Retried, shapes.Cancelled)


def text() -> str:
    """The whole page, as Markdown."""
    commands = app.build().generate_docs(output_format="markdown", heading_level=2)
    return (
        "\n".join([_INTRODUCTION, *_exit_codes(), "", commands.strip(), "", _JSON, *_tables()]).rstrip()
        + "\n"
    )


def _exit_codes() -> Iterator[str]:
    yield "| code | meaning |"
    yield "|---|---|"
    for code in ExitCode:
        yield f"| {int(code)} | {code.meaning} |"


def _tables() -> Iterator[str]:
    for title, shape in _SHAPES:
        yield f"### {title}\n"
        yield "| key | meaning |"
        yield "|---|---|"
        # Keys that are those of an operation are told once.
        inherited = shapes.Operation.__annotations__ if shape in _WITH_AN_OPERATION else {}
        if inherited:
            yield "| … | all keys of an operation, above |"
        for key, hint in get_type_hints(shape, include_extras=True).items():
            if key not in inherited:
                yield f"| `{key}` | {get_args(hint)[1]} |"
        yield ""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(), encoding="utf-8")
