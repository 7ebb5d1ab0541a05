"""The options of `enqueue`: what is to be written, why, and for whom."""

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Group, Parameter

from oncebox_operate import options
from oncebox_operate.options import WHOSE

_NOTE: Final = Group("The note", sort_key=10)
_WHY: Final = Group("Why", sort_key=15)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is to be written. Nothing is checked here: the outbox tells all faults at once."""

    operation_id: Annotated[
        str | None,
        Parameter(
            name="--operation-id",
            env_var="ONCEBOX_OPERATION_ID",
            group=_NOTE,
            help="Your name for this write: the same name is the same write, for ever. "
            "Without one it is derived from run, step and kind.",
        ),
    ] = None
    folder: Annotated[
        str | None,
        Parameter(name="--folder", env_var="ONCEBOX_FOLDER", group=_NOTE, help="Where a new note goes."),
    ] = None
    title: Annotated[
        str | None,
        Parameter(
            name="--title", env_var="ONCEBOX_TITLE", group=_NOTE, allow_leading_hyphen=True, help="Its title."
        ),
    ] = None
    text: Annotated[
        str | None,
        Parameter(
            name="--text",
            env_var="ONCEBOX_TEXT",
            group=_NOTE,
            allow_leading_hyphen=True,
            help="Its text; - reads it from stdin.",
        ),
    ] = None
    text_file: Annotated[
        str | None,
        Parameter(
            name="--text-file",
            env_var="ONCEBOX_TEXT_FILE",
            group=_NOTE,
            allow_leading_hyphen=True,
            help="A UTF-8 file with its text; - is stdin.",
        ),
    ] = None
    format: Annotated[
        str | None,
        Parameter(
            name="--format",
            env_var="ONCEBOX_FORMAT",
            group=_NOTE,
            help="markdown or plain. [default: markdown]",
        ),
    ] = None
    kind: Annotated[
        str | None,
        Parameter(
            name="--kind",
            env_var="ONCEBOX_KIND",
            group=_NOTE,
            help="note.create or note.revise. [default: note.revise with --note-id, else note.create]",
        ),
    ] = None
    note_id: Annotated[
        str | None,
        Parameter(name="--note-id", env_var="ONCEBOX_NOTE_ID", group=_NOTE, help="The note to revise."),
    ] = None
    if_match: Annotated[
        str | None,
        Parameter(
            name="--if-match",
            env_var="ONCEBOX_IF_MATCH",
            group=_NOTE,
            help="The etag of the version to revise, as in its receipt.",
        ),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The intent behind the write."""

    run: Annotated[
        str | None,
        Parameter(name="--run", env_var="ONCEBOX_RUN", group=_WHY, help="The agent's run. [default: cli]"),
    ] = None
    step: Annotated[
        str | None,
        Parameter(
            name="--step",
            env_var="ONCEBOX_STEP",
            group=_WHY,
            help="The step of the run. [default: the operation_id]",
        ),
    ] = None
    purpose: Annotated[
        str | None,
        Parameter(
            name="--purpose",
            env_var="ONCEBOX_PURPOSE",
            group=_WHY,
            allow_leading_hyphen=True,
            help="What the write is for, in one sentence. [default: entered with oncebox enqueue]",
        ),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """For whom, and to where."""

    tenant: Annotated[
        str, Parameter(name="--tenant", env_var="ONCEBOX_TENANT", group=WHOSE, help="For whom it is.")
    ] = "demo"
    principal: Annotated[
        str,
        Parameter(
            name="--principal",
            env_var="ONCEBOX_PRINCIPAL",
            group=WHOSE,
            help="Whose grants at the note service decide.",
        ),
    ] = "researcher"
    destination: Annotated[
        str,
        Parameter(name="--destination", env_var="ONCEBOX_DESTINATION", group=WHOSE, help="Where it goes."),
    ] = options.DEFAULT_DESTINATION
