"""The receiver: what was last seen of it, whether it answers, accepts our token, and has the same time as we."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

import httpx2
from pydantic import SecretStr, ValidationError

from oncebox_destinations.note_service import NoteService
from oncebox_destinations.reads import ReadRefused, ReceiverUnreachable
from oncebox_destinations.settings import NoteServiceSettings, WrongSettings
from oncebox_models.calls import Capabilities
from oncebox_operate.doctor.checks import Check, fail, ok, unreachable, warn
from oncebox_operate.durations import shown
from oncebox_outbox.registry import Seen
from oncebox_worker.safe_settings import UnsafeSettings, check_receiver, check_times
from oncebox_worker.settings import WorkerSettings

_CALL_S: Final = 5.0
_SKEW_S: Final = 5.0
"""Clocks further apart than this are worth a word: deadlines are made by one and checked by the other."""
_WRONG_CLOCK_S: Final = 300.0
_TOKEN: Final = "export ONCEBOX_TOKEN=$(oncebox token create --tenant demo --principal worker --delegate)"
_SERVE: Final = "oncebox notes serve"


def of_settings() -> tuple[list[Check], WorkerSettings | None]:
    """Whether a worker would start with the numbers in the variables; they are returned when it would."""
    try:
        # The addresses are looked at one by one: here they must only be there.
        settings = WorkerSettings(
            database_url="postgresql://", broker_url="amqp://", notes_url="http://", token=SecretStr("unset")
        )
        check_times(settings)
    except ValidationError as error:
        return [
            fail("settings", f"{_variable(fault['loc'])}: {fault['msg']}", f"unset {_variable(fault['loc'])}")
            for fault in error.errors(include_url=False, include_input=False)
        ], None
    except UnsafeSettings as error:
        return [
            fail("settings", fault, "unset ONCEBOX_LEASE_S ONCEBOX_CALL_TIMEOUT_S") for fault in error.faults
        ], None
    return [
        ok("settings", f"a lease ({settings.lease_s:g} s) outlasts a call ({settings.call_timeout_s:g} s)")
    ], settings


def of_destination(name: str, seen: Seen | None, settings: WorkerSettings | None) -> Check:
    """What the receiver last said of itself, against our settings."""
    if seen is None:
        says = f"no worker has reached the receiver of {name!r} yet: nothing is sent to it"
        return warn("destination", says, "oncebox worker")
    if settings is not None and (faults := _contradictions(settings, seen.capabilities)):
        return fail("destination", "; ".join(faults), "oncebox config")
    return ok(
        "destination",
        f"{name}: receiver {seen.capabilities.receiver}, last seen {seen.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
    )


def of_service(
    url: str | None, token: str | None, seen: Seen | None, clock: Callable[[], datetime] | None
) -> Iterator[Check]:
    """Whether it answers, whether it is the receiver that was seen, accepts our token and has our database's time.

    seen: what the destination's receiver last said. clock: our database's; None when it cannot be asked.
    """
    if url is None:
        says = "not looked at: ONCEBOX_NOTES_URL is not set"
        yield warn("note service", says, "export ONCEBOX_NOTES_URL=http://127.0.0.1:8320")
        return
    answered = _ready(url)
    yield answered
    if answered.unreachable:
        return
    if token is None:
        yield warn("token", "not looked at: ONCEBOX_TOKEN is not set", _TOKEN)
        return
    yield from _told(url, token, seen, clock)


def _ready(url: str) -> Check:
    try:
        answer = httpx2.get(f"{url.rstrip('/')}/readyz", timeout=_CALL_S)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        why = str(error) or type(error).__name__
        return unreachable("note service", f"{url} does not answer ({why})", _SERVE)
    if answer.status_code == 200:
        return ok("note service", f"{url} answers and is ready")
    if answer.status_code == 503:
        return fail("note service", f"{url} answers that it is not ready", "oncebox migrate status")
    says = f"{url} answers {answer.status_code}, not as a note service would"
    return fail("note service", says, "export ONCEBOX_NOTES_URL=http://127.0.0.1:8320")


def _told(url: str, token: str, seen: Seen | None, clock: Callable[[], datetime] | None) -> Iterator[Check]:
    before = clock() if clock else None
    try:
        told = asyncio.run(_ask(url, token))
    except (WrongSettings, ReadRefused) as error:
        yield fail("token", str(error), _TOKEN)
        return
    except ReceiverUnreachable as error:
        yield unreachable("note service", str(error), _SERVE)
        return
    after = clock() if clock else None
    yield ok("token", "is accepted")
    if seen is not None and seen.capabilities.receiver != told.receiver:
        # Another party than the one that our operations were sent to: their keys mean nothing to it.
        says = f"receiver {told.receiver} answers, not {seen.capabilities.receiver}, whose the destination is"
        yield fail(
            "receiver", f"{says}. Name that one's address", "export ONCEBOX_NOTES_URL=http://HOST:PORT"
        )
    if before is not None and after is not None:
        yield _skew(before, told.server_time, after)


async def _ask(url: str, token: str) -> Capabilities:
    service = NoteService(NoteServiceSettings(url, SecretStr(token), call_timeout_s=_CALL_S), tries=1)
    try:
        return await service.capabilities()
    finally:
        await service.aclose()


def _skew(before: datetime, theirs: datetime, after: datetime) -> Check:
    """Their clock was read between our two looks, so what lies outside is skew for certain."""
    seconds = max((before - theirs).total_seconds(), (theirs - after).total_seconds(), 0.0)
    if seconds <= _SKEW_S:
        return ok("clock", "the two databases agree on the time")
    which = "behind" if theirs < before else "ahead of"
    says = f"the receiver's database is {shown(seconds)} {which} ours: deadlines are checked by its clock"
    return (fail if seconds > _WRONG_CLOCK_S else warn)("clock", says, "timedatectl set-ntp true")


def _contradictions(settings: WorkerSettings, told: Capabilities) -> list[str]:
    try:
        check_receiver(settings, told)
    except UnsafeSettings as error:
        return error.faults
    return []


def _variable(path: tuple[int | str, ...]) -> str:
    return f"ONCEBOX_{str(*path[:1]).upper()}"
