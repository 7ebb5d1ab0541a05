"""One JSON object a line on stderr, from our own code and from Celery's alike."""

import logging
import sys
from typing import Final

import structlog

from oncebox_worker.events import Event

_SHARED: Final[list[structlog.typing.Processor]] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
]


class Log:
    """Logs by event: a name from `Event` and fields. Never text of a note, never a token."""

    def __init__(self, name: str) -> None:
        self._logger: Final = logging.getLogger(name)

    def debug(self, event: Event, **fields: object) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: Event, **fields: object) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: Event, **fields: object) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: Event, **fields: object) -> None:
        self._write(logging.ERROR, event, fields)

    def _write(self, level: int, event: Event, fields: dict[str, object]) -> None:
        self._logger.log(level, str(event), extra={"fields": fields})


def configure(level: str) -> None:
    """Send every log record of this process to stderr as JSON. Called once, by an entry point."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_SHARED, _with_fields],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(default=str),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    # Libraries speak up when something is wrong; their chatter is not ours to print.
    for name in ("celery", "kombu", "amqp", "httpx2", "httpcore2", "asyncio", "urllib3"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # A task that gives its message back has said why by an event of its own.
    logging.getLogger("celery.app.trace").setLevel(logging.ERROR)


def _with_fields(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Our events carry their fields; a library's record becomes event "log" with its text and its logger's name."""
    record: logging.LogRecord = event["_record"]
    fields = getattr(record, "fields", None)
    if isinstance(fields, dict):
        return {**event, **fields}
    return {**event, "event": "log", "logger": record.name, "message": event["event"]}
