"""What people see of operations: sentences and tables. Everything that came from elsewhere is made harmless."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from oncebox_models.states import State
from oncebox_operate import durations, shapes
from oncebox_operate.output import plain
from oncebox_outbox.listing import TimelineCall
from oncebox_outbox.status import OperationStatus

STYLES = {
    State.SAVED: "green",
    State.PENDING: "cyan",
    State.SENDING: "cyan",
    State.RETRYING: "yellow",
    State.UNKNOWN: "bold yellow",
    State.REFUSED: "red",
    State.NOT_SAVED: "red",
    State.NEEDS_REVIEW: "bold magenta",
}


def operation(known: OperationStatus) -> RenderableType:
    """The sentence that says it, then the details."""
    details = _grid()
    for name, value in _details(known):
        details.add_row(Text(f"  {name}", "dim"), Text(plain(value)))
    return Group(said(known), details)


def said(known: OperationStatus) -> Text:
    """The sentence, in the colour of its state."""
    return Text(plain(known.say), STYLES[known.state])


def timeline(known: OperationStatus, calls: Sequence[TimelineCall]) -> RenderableType:
    """The operation, and what happened to it in order."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", title_justify="left")
    for column in ("  at (UTC)", "after", "event", "outcome", "reason", "took", "call"):
        table.add_column(column, no_wrap=True)
    table.add_row(*_event(known, known.created_at, "enqueued"))
    for call in calls:
        took = "" if call.finished_at is None else _between(call.started_at, call.finished_at)
        outcome = plain(call.outcome) if call.outcome else "under way"
        what = str(call.kind) if call.operations == 1 else f"{call.kind} ({call.operations} operations)"
        table.add_row(
            *_event(known, call.started_at, what),
            Text(outcome, _outcome_style(call.outcome)),
            plain(call.reason or ""),
            took,
            Text(str(call.call_id), "dim"),
        )
    if known.settled_at is not None:
        table.add_row(
            *_event(known, known.settled_at, "settled"), Text(str(known.state), STYLES[known.state])
        )
    return Group(operation(known), Text(), table)


def operations(listed: Sequence[OperationStatus]) -> RenderableType:
    """One line an operation, newest first."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("operation", "state", "whose", "to", "run / step", "age", "attempts", "reason"):
        table.add_column(column, no_wrap=column != "reason")
    for known in listed:
        table.add_row(
            known.operation_id,
            Text(str(known.state), STYLES[known.state]),
            f"{known.tenant}/{known.principal}",
            known.destination,
            plain(f"{known.run} / {known.step}"),
            _between(known.created_at, known.as_of),
            "" if known.attempts is None else str(known.attempts),
            plain(known.reason or ""),
        )
    return table


def lag(seen: shapes.Lag) -> RenderableType:
    """Depth and age by destination and state, and the sentence that sums it up."""
    if not seen["entries"]:
        return Text("Nothing is open: every operation is settled.", "green")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("destination", "state"):
        table.add_column(column)
    for column in ("open", "oldest"):
        table.add_column(column, justify="right")
    for destination in seen["destinations"]:
        for state, depth in destination["states"].items():
            table.add_row(
                destination["destination"],
                Text(state, STYLES[State(state)]),
                f"{depth['entries']:,}",
                durations.shown(depth["oldest_age_s"]),
            )
    return Group(table, _lag_sentence(seen))


def _lag_sentence(seen: shapes.Lag) -> Text:
    unknown = f", {seen['unknown']:,} of unknown outcome" if seen["unknown"] else ""
    sentence = Text(
        f"{seen['entries']:,} open{unknown}; the oldest is {durations.shown(seen['oldest_age_s'])} old."
    )
    if seen["max_age_s"] is not None and not seen["ok"]:
        sentence.append(f" Older than {durations.shown(seen['max_age_s'])}.", "bold red")
    return sentence


def _details(known: OperationStatus) -> list[tuple[str, str]]:
    details = [
        ("operation", f"{known.operation_id} ({known.kind})"),
        ("id", str(known.id)),
        ("whose", f"{known.tenant}/{known.principal} to {known.destination}"),
        ("why", f"{known.purpose} (run {known.run}, step {known.step})"),
        ("enqueued", f"{_clock(known.created_at)}, {_between(known.created_at, known.as_of)} ago"),
    ]
    if known.settled_at is not None:
        details.append(
            ("settled", f"{_clock(known.settled_at)}, {_between(known.created_at, known.settled_at)} later")
        )
    else:
        details.append(("attempts", _attempts(known)))
        if known.next_at is not None:
            due = (known.next_at - known.as_of).total_seconds()
            details.append(("next call", "due now" if due <= 0 else f"in {durations.shown(due)}"))
        details.append(("deadline", _clock(known.deadline)))
    if known.supersedes is not None:
        details.append(("replaces", str(known.supersedes)))
    return details


def _attempts(known: OperationStatus) -> str:
    if not known.attempts:
        return "none: nothing was sent"
    return f"{known.attempts}, {known.unanswered} of them without a verdict"


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _event(known: OperationStatus, at: datetime, what: str) -> tuple[str, str, str]:
    return (
        f"  {at.astimezone(UTC):%H:%M:%S}.{at.microsecond // 1000:03d}",
        "+" + _between(known.created_at, at),
        what,
    )


def _between(start: datetime, end: datetime) -> str:
    return durations.shown(max((end - start).total_seconds(), 0.0))


def _outcome_style(outcome: str | None) -> str:
    match outcome:
        case "receipt":
            return "green"
        case "unknown" | "in_progress" | "not_found" | None:
            return "yellow"
        case _:
            return "red"


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    return grid
