"""`enqueue`: commit the wish to save a note, or a new version of one."""

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Group, Parameter
from rich.text import Text
from sqlalchemy import Connection

from oncebox_models.arguments import Kind
from oncebox_operate import failures, options, sender, shaping, superseding
from oncebox_operate.commands.write_options import Note, Party, Why
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.options import DatabaseUrl, Scope
from oncebox_operate.output import AS_TEXT, Output, plain
from oncebox_operate.superseding import Superseded
from oncebox_outbox import Enqueued, Intent, Outbox, Write

_HOW: Final = Group("How", sort_key=30)
_NO_NOTE: Final = Note()
_NO_REASON: Final = Why()
_RESEARCHER: Final = Party()
_RUN: Final = "cli"
_PURPOSE: Final = "entered with oncebox enqueue"


def enqueue(
    *,
    note: Note = _NO_NOTE,
    why: Why = _NO_REASON,
    party: Party = _RESEARCHER,
    deadline: Annotated[
        datetime | timedelta | None,
        Parameter(
            name="--deadline",
            env_var="ONCEBOX_DEADLINE",
            group=_HOW,
            converter=options.to_deadline,
            help="After it nothing is executed: 72h, or 2031-01-02T03:04:05Z. [default: 72h]",
        ),
    ] = None,
    ordering_key: Annotated[
        str | None,
        Parameter(
            name="--ordering-key",
            env_var="ONCEBOX_ORDERING_KEY",
            group=_HOW,
            help="Writes with the same key go one after another, in commit order.",
        ),
    ] = None,
    supersedes: Annotated[
        str | None,
        Parameter(
            name="--supersedes",
            env_var="ONCEBOX_SUPERSEDES",
            group=_HOW,
            help="The operation that this one replaces, now that it is settled: its operation_id or UUID. "
            "Of one that never was saved, everything is taken over that is not given here.",
        ),
    ] = None,
    database_url: DatabaseUrl = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Commit the wish to save a note.

    Workers deliver it; `oncebox wait` says what became of it. Exits with 0 once it is committed, also when it existed
    already with the same arguments: then nothing more is sent. Other arguments under the same id: exit 4, nothing is
    written. Neither broker, workers nor note service must be up.

    * `oncebox enqueue --operation-id note-7 --folder drafts --title "Finding 7" --text "Reef B recovers faster."`
    * `oncebox enqueue --run run-42 --step summarise --folder drafts --title Summary --text-file summary.md`
    * `oncebox enqueue --operation-id note-7b --note-id 0199… --if-match … --title "Finding 7" --text - < edited.md`
    * `oncebox enqueue --operation-id note-7-2 --supersedes note-7 --folder drafts` (the refused note-7 again, corrected)
    """
    given = _arguments(note)
    with sender.engine(options.sender_server(database_url)) as engine, engine.begin() as connection:
        old = None if supersedes is None else _superseded(connection, supersedes, note, party)
        outbox = Outbox(party.tenant, party.principal, party.destination)
        write = Write(
            _intent(why, note.operation_id, old),
            given if old is None else {**old.arguments, **given},
            _kind(note, old),
            note.operation_id,
            deadline,
            ordering_key if ordering_key is not None or old is None else old.ordering_key,
            None if old is None else old.status.id,
        )
        held = outbox.enqueue(connection, write)
    say = _say(held)
    output.data(shaping.enqueued(outbox, held, say), lambda: Text(plain(say)))
    if held.created:
        output.note(f"What became of it: oncebox wait {held.operation_id}{_narrowing(party)}")
    return ExitCode.OK


def _narrowing(party: Party) -> str:
    return "" if party == _RESEARCHER else f" --tenant {party.tenant} --principal {party.principal}"


def _superseded(connection: Connection, identifier: str, note: Note, party: Party) -> Superseded:
    if note.operation_id is None:
        # The derived name would be the old one's own.
        raise failures.usage(
            "A write that replaces another needs a name of its own: --operation-id is missing.",
            f"For example: --operation-id {identifier}-2",
        )
    return superseding.superseded(
        connection, identifier, Scope(tenant=party.tenant, principal=party.principal)
    )


def _kind(note: Note, old: Superseded | None) -> str:
    if note.kind is None and old is not None and old.arguments and note.note_id is None:
        return old.status.kind
    return note.kind or (Kind.NOTE_CREATE if note.note_id is None else Kind.NOTE_REVISE)


def _arguments(note: Note) -> Mapping[str, object]:
    given = {
        "folder": note.folder,
        "note_id": note.note_id,
        "if_match": note.if_match,
        "title": note.title,
        "text": _text(note.text, note.text_file),
        "format": note.format,
    }
    return {name: value for name, value in given.items() if value is not None}


def _intent(why: Why, operation_id: str | None, old: Superseded | None) -> Intent:
    """Why it is wanted; what replaces another is wanted for the same reason, unless another is given."""
    run, step, purpose = why.run, why.step, why.purpose
    if old is not None:
        known = old.status
        run = known.run if run is None else run
        step = known.step if step is None and run == known.run else step
        purpose = known.purpose if purpose is None else purpose
    run = _RUN if run is None else run
    return Intent(run, _step(step, run, operation_id), _PURPOSE if purpose is None else purpose)


def _step(step: str | None, run: str, operation_id: str | None) -> str:
    """The intent's step. Without step and operation_id two different notes would get the same derived id."""
    if step is not None:
        return step
    if operation_id is None:
        raise failures.usage(
            "Say which write this is: --operation-id NAME, or --run RUN --step STEP to have a name derived.",
            "For example: --operation-id note-7",
        )
    # A blank operation_id is told as a fault of its own; the step must not add a second one.
    return operation_id if operation_id.strip() else run


def _say(held: Enqueued) -> str:
    if held.created:
        return f"Enqueued: {held.operation_id} is committed and will be delivered."
    return held.say


def _text(text: str | None, text_file: str | None) -> str | None:
    if text is not None and text_file is not None:
        raise failures.usage("--text and --text-file are both given; use one of them.")
    if "-" in (text, text_file):
        return _decoded(sys.stdin.buffer.read(), "stdin")
    if text_file is None:
        return text
    try:
        return _decoded(Path(text_file).read_bytes(), text_file)
    except OSError as error:
        raise failures.usage(f"Cannot read {text_file}: {error.strerror or error}.") from None


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise failures.usage(
            f"The text from {where} is not UTF-8: byte {error.start} cannot be read.",
            "Convert it, for example with iconv.",
        ) from None
