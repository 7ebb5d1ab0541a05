"""The Celery app and its one task. An entry point: `celery -A oncebox_worker.app worker -P threads` works as it is."""

from celery import Celery
from celery.exceptions import Reject
from celery.signals import celeryd_init, setup_logging, worker_init, worker_ready

from oncebox_outbox.engine import UNAVAILABLE
from oncebox_outbox.errors import RetryTransaction
from oncebox_worker import logs, preflight, process, receiver_watch
from oncebox_worker.celery_config import celery_config
from oncebox_worker.draining import Drain
from oncebox_worker.events import Event
from oncebox_worker.logs import Log
from oncebox_worker.messages import DELIVER_TASK, Chunk

log = Log(__name__)

app = Celery("oncebox", set_as_current=False)
# Read when Celery first needs them, so that importing this module needs no environment.
app.add_defaults(lambda: celery_config(process.settings()))
app.steps["consumer"].add(Drain)


@app.task(name=DELIVER_TASK)
def deliver(message: dict[str, object]) -> None:
    """Deliver one chunk. The message is a hint: whatever is due among its ids is claimed, the rest is left alone."""
    try:
        chunk = Chunk.model_validate(message)
    except ValueError as error:
        log.error(Event.MESSAGE_UNREADABLE, error=str(error)[:500])
        raise Reject("unreadable", requeue=False) from error
    delivery = process.delivery()
    if chunk.destination not in delivery.destinations:
        # Another worker may know it. The broker sets the message aside, and the relay takes its stamp back.
        log.warning(Event.DESTINATION_UNKNOWN, destination=chunk.destination, operations=len(chunk.ids))
        raise Reject("unknown destination", requeue=False)
    try:
        delivery.deliver(chunk.destination, chunk.ids)
    except (*UNAVAILABLE, RetryTransaction) as error:
        log.warning(Event.DATABASE_UNREACHABLE, during="deliver", error=str(error).splitlines()[0][:200])
        raise Reject("database unreachable", requeue=False) from error


# The first is sent before Celery's earliest warnings; a receiver of the second keeps Celery from its own set-up.
@celeryd_init.connect
@setup_logging.connect
def _log_as_json(**_: object) -> None:
    logs.configure(process.settings().log_level)


@worker_init.connect
def _refuse_unsafe_settings(**_: object) -> None:
    preflight.check_worker(process.settings())


@worker_ready.connect
def _watch_receiver(**_: object) -> None:
    log.info(Event.WORKER_STARTED, destination=process.settings().destination)
    receiver_watch.start(process.settings())
