"""The Celery app and its one task. An entry point: `celery -A oncebox_worker.app worker -P threads` works as it is."""

from celery import Celery
from celery.exceptions import Reject
from celery.signals import celeryd_init, setup_logging, worker_init, worker_ready
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError

from oncebox_outbox.engine import UNAVAILABLE
from oncebox_outbox.errors import RetryTransaction
from oncebox_worker import logs, preflight, process, receiver_watch
from oncebox_worker.celery_config import celery_config
from oncebox_worker.draining import Drain
from oncebox_worker.events import Event
from oncebox_worker.logs import Log
from oncebox_worker.messages import DELIVER_TASK, Chunk
from oncebox_worker.settings import WorkerSettings

log = Log(__name__)

app = Celery("oncebox", set_as_current=False)
# Read when Celery first needs them, so that importing this module needs no environment.
app.add_defaults(lambda: celery_config(_settings()))
app.steps["consumer"].add(Drain)


def _settings() -> WorkerSettings:
    """This process's settings; ends it with what is wrong with them."""
    try:
        return process.settings()
    except ValidationError as error:
        logs.configure("info")
        preflight.refuse(error)


@app.task(name=DELIVER_TASK)
def deliver(message: dict[str, object]) -> None:
    """Deliver one chunk. The message is a hint: whatever is due among its ids is claimed, the rest is left alone."""
    try:
        chunk = Chunk.model_validate(message)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        log.error(Event.MESSAGE_UNREADABLE, faults=[f"{fault['loc']}: {fault['msg']}" for fault in faults])
        raise Reject("unreadable", requeue=False) from error
    try:
        delivery = process.delivery()
        if chunk.destination not in delivery.destinations:
            # Another worker may know it. The broker sets the message aside, and the relay takes its stamp back.
            log.warning(Event.DESTINATION_UNKNOWN, destination=chunk.destination, operations=len(chunk.ids))
            raise Reject("unknown destination", requeue=False)
        delivery.deliver(chunk.destination, chunk.ids)
    except (*UNAVAILABLE, RetryTransaction) as error:
        log.warning(Event.DATABASE_UNREACHABLE, during="deliver", error=_brief(error))
        raise Reject("database unreachable", requeue=False) from error
    except DBAPIError as error:
        # Not as it is: the database's text goes on with the row that it refused, and the row holds the note.
        log.error(Event.DELIVERY_FAILED, destination=chunk.destination, error=_brief(error))
        raise Reject("delivery failed", requeue=False) from None


def _brief(error: Exception) -> str:
    return str(error).splitlines()[0][:200]


# The first is sent before Celery's earliest warnings; a receiver of the second keeps Celery from its own set-up.
@celeryd_init.connect
@setup_logging.connect
def _log_as_json(**_: object) -> None:
    logs.configure(_settings().log_level)


@worker_init.connect
def _refuse_unsafe_settings(**_: object) -> None:
    preflight.check_worker(process.settings())


@worker_ready.connect
def _watch_receiver(**_: object) -> None:
    log.info(Event.WORKER_STARTED, destination=process.settings().destination)
    receiver_watch.start(process.settings())
