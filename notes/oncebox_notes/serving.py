"""The server process: one uvicorn on one port, logs as JSON on stderr, an orderly end on SIGTERM and SIGINT."""

import json
import logging
import signal
import socket
import sys
from types import FrameType

import structlog
import uvicorn

from oncebox_notes.app import create_app
from oncebox_notes.settings import Settings

_log = structlog.stdlib.get_logger(__name__)


class _Server(uvicorn.Server):
    """Says on stdout that it is ready, in one line, once connections are accepted."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if sockets and not self.should_exit:
            host, port = sockets[0].getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            sys.stdout.write(json.dumps({"event": "ready", "url": f"http://{shown}:{port}"}) + "\n")
            sys.stdout.flush()
            _log.info("ready", host=host, port=port)


def serve(settings: Settings) -> bool:
    """Serves until it is told to stop; open requests are answered first. False when it could not start.

    Raises OSError when the address cannot be used.
    """
    configure_logs(settings.log_level)
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    config = uvicorn.Config(
        create_app(settings),
        http="httptools",
        loop="uvloop",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=max(1, int(settings.request_limit_seconds)),
        lifespan="on",
    )
    server = _Server(config)
    # uvicorn raises the signal again when it has finished; these make that an ordinary end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _finish_quietly)
    with listening:
        server.run(sockets=[listening])
    _log.info("stopped")
    return server.started


def _finish_quietly(_: int, __: FrameType | None) -> None:
    """The server has stopped already."""


def configure_logs(level: str) -> None:
    """structlog and the standard library alike: one JSON object a line on stderr."""
    shared = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Its notices say in sentences what our own events say already.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
