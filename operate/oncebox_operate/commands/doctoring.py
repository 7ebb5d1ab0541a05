"""`doctor`: is everything as it must be, and what to type where it is not."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from oncebox_operate import options, shapes
from oncebox_operate.doctor import examination
from oncebox_operate.doctor.checks import Check, Verdict
from oncebox_operate.doctor.examination import Parties
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.options import BrokerUrl, DatabaseUrl, NotesDatabaseUrl, NotesToken, NotesUrl
from oncebox_operate.output import AS_TEXT, Output, plain, stderr

_STYLES = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "bold red"}


def doctor(
    *,
    quick: Annotated[
        bool,
        Parameter(
            name="--quick",
            env_var="ONCEBOX_DOCTOR_QUICK",
            show_default=False,
            negative="",
            help="For a health check: the sender's database, its tables and the broker's port only.",
        ),
    ] = False,
    destination: Annotated[
        str,
        Parameter(name="--destination", env_var="ONCEBOX_DESTINATION", help="Whose receiver is looked at."),
    ] = options.DEFAULT_DESTINATION,
    database_url: DatabaseUrl = None,
    notes_database_url: NotesDatabaseUrl = None,
    broker_url: BrokerUrl = None,
    notes_url: NotesUrl = None,
    token: NotesToken = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Look whether everything is as it must be.

    One line a check; one that is not `ok` ends with the command to type. It changes nothing, and tells only what can
    be known at this moment. Exits with 8 when a check fails, and with 9 when a database, the broker or the note
    service does not answer. A warning alone exits with 0.

    * `oncebox doctor`
    * `oncebox doctor --json`
    * `oncebox doctor --quick` (for a container's health check: under a second)
    """
    parties = Parties(
        options.sender_server(database_url),
        None if notes_database_url is None else options.notes_server(notes_database_url),
        broker_url,
        notes_url,
        token,
        destination,
    )
    checks = list(examination.quickly(parties)) if quick else _thoroughly(parties)
    value = _shape(checks, quick)
    output.data(value, lambda: _view(checks))
    if any(check.unreachable for check in checks):
        return ExitCode.UNREACHABLE
    return ExitCode.OK if value["ok"] else ExitCode.CHECK_FAILED


def _thoroughly(parties: Parties) -> list[Check]:
    with stderr().status("Looking at the settings") as status:
        return list(examination.thoroughly(parties, lambda party: status.update(f"Looking at {party}")))


def _shape(checks: Sequence[Check], quick: bool) -> shapes.Examined:
    counted = {verdict: sum(check.verdict is verdict for check in checks) for verdict in Verdict}
    return {
        "ok": not counted[Verdict.FAIL],
        "failed": counted[Verdict.FAIL],
        "warned": counted[Verdict.WARN],
        "quick": quick,
        "checks": [
            {
                "check": check.name,
                "verdict": str(check.verdict),
                "says": check.says,
                "do": check.do,
                "unreachable": check.unreachable,
            }
            for check in checks
        ],
    }


def _view(checks: Sequence[Check]) -> Text:
    # No table: it would wrap a command that is to be copied whole.
    width = max(len(check.name) for check in checks)
    return Text("\n").join([*(_line(check, width) for check in checks), _verdict(checks)])


def _line(check: Check, width: int) -> Text:
    line = Text(f"{check.verdict:<4}  ", _STYLES[check.verdict])
    line.append(f"{check.name:<{width}}  ", "dim").append(plain(check.says), "default")
    return line if check.do is None else line.append(": ", "default").append(plain(check.do), "bold")


def _verdict(checks: Sequence[Check]) -> Text:
    failed = sum(check.verdict is Verdict.FAIL for check in checks)
    warned = sum(check.verdict is Verdict.WARN for check in checks)
    if failed:
        return Text(f"{failed} of {len(checks)} checks failed. Type what such a line ends with.", "bold red")
    if warned:
        return Text(f"Nothing failed; {warned} of {len(checks)} lines are for you to judge.", "yellow")
    return Text(f"All {len(checks)} checks are ok.", "green")
