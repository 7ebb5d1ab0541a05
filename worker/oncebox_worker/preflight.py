"""What happens before a relay or worker runs: all checks, and a refusal that says what to change."""

import sys
from collections.abc import Callable
from typing import NoReturn

from pydantic import ValidationError

from oncebox_outbox import registry
from oncebox_outbox.engine import UNAVAILABLE, worker_engine
from oncebox_worker import receiver_watch
from oncebox_worker.events import Event
from oncebox_worker.logs import Log
from oncebox_worker.safe_settings import UnsafeSettings, check_database, check_times
from oncebox_worker.settings import RoleSettings, WorkerSettings

log = Log(__name__)


def check_worker(settings: WorkerSettings) -> None:
    """All checks of a worker. Ends the process with the faults listed when one fails."""
    try:
        database = _faults_of(check_database, settings)
        faults = _faults_of(check_times, settings) + database
        try:
            faults += _faults_of(_check_receiver, settings)
        except Exception:
            # What the database lacks is said already.
            if not database:
                raise
        if faults:
            raise UnsafeSettings(faults)
    except Exception as error:
        # Whatever it is: Celery only logs what a signal's receiver raises, and would start without the checks.
        refuse(error)


def check_relay(settings: RoleSettings) -> None:
    """All checks of a relay. Ends the process with the faults listed when one fails."""
    try:
        check_database(settings)
    except (UnsafeSettings, *UNAVAILABLE) as error:
        refuse(error)


def refuse(error: Exception) -> NoReturn:
    """Say why this process does not start, one line a fault, and end it: 9 for a database out of reach, else 1."""
    faults = _faults(error)
    log.error(Event.START_REFUSED, faults=faults)
    for fault in faults:
        print(f"oncebox does not start: {fault}", file=sys.stderr)
    raise SystemExit(9 if isinstance(error, UNAVAILABLE) else 1)


def _check_receiver(settings: WorkerSettings) -> None:
    engine = worker_engine(settings.database_url, pool_size=1, application="oncebox start")
    try:
        if registry.last_seen(engine, settings.destination) is None:
            registry.register(engine, settings.destination, settings.notes_url, "A")
        receiver_watch.look(settings, engine)
        # Only now: an address where another receiver answers is not written down.
        registry.register(engine, settings.destination, settings.notes_url, "A")
    except registry.OtherReceiver as error:
        raise UnsafeSettings([str(error)]) from error
    finally:
        engine.dispose()


def _faults_of(check: Callable[[WorkerSettings], None], settings: WorkerSettings) -> list[str]:
    try:
        check(settings)
    except UnsafeSettings as error:
        return error.faults
    return []


def _faults(error: Exception) -> list[str]:
    match error:
        case UnsafeSettings():
            return error.faults
        case ValidationError():
            wrong = error.errors(include_url=False, include_input=False)
            return [f"ONCEBOX_{str(*fault['loc'][:1]).upper()}: {fault['msg']}" for fault in wrong]
        case _:
            return [(str(error) or type(error).__name__).splitlines()[0]]
