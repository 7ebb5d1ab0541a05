"""Metrics read from PostgreSQL at each scrape: exact in every process, with no worker and no broker alive."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from socketserver import ThreadingMixIn
from typing import Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import Engine

from oncebox_models.states import LIVE_STATES, State
from oncebox_operate import failures, version
from oncebox_operate.exit_codes import ExitCode
from oncebox_outbox import insights
from oncebox_outbox.engine import worker_engine
from oncebox_outbox.insights import Lag

OPEN_STATES: Final = (*sorted(LIVE_STATES), State.NEEDS_REVIEW)
"""The states that an entry can be in; each destination has all of them, with zeros."""
_log: Final = logging.getLogger(__name__)
_PLAIN: Final = [("Content-Type", "text/plain; charset=utf-8")]

_Environment = dict[str, object]
_StartResponse = Callable[..., object]
_WsgiApp = Callable[[_Environment, _StartResponse], Iterable[bytes]]


class OutboxCollector(Collector):
    """Asks the database each time it is asked. An exception of the database goes to the caller: no stale number."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        with self._engine.connect() as connection:
            seen = insights.lag(connection)
        yield _entries(seen)
        yield _oldest_age(seen)
        yield GaugeMetricFamily(
            "outbox_scale_target",
            "Entries that are ready, leased or due within 30 seconds: the number for an autoscaler.",
            value=seen.scale_target,
        )
        info = GaugeMetricFamily("outbox_build_info", "Which Oncebox this is; always 1.", labels=["version"])
        info.add_metric([version.ONCEBOX], 1)
        yield info


def _entries(seen: Lag) -> Metric:
    family = GaugeMetricFamily(
        "outbox_entries", "Operations that are not settled, by state.", labels=["destination", "state"]
    )
    counted = {(depth.destination, depth.state): depth.entries for depth in seen.depths}
    for destination in _destinations(seen):
        for state in OPEN_STATES:
            family.add_metric([destination, str(state)], counted.get((destination, state), 0))
    return family


def _oldest_age(seen: Lag) -> Metric:
    family = GaugeMetricFamily(
        "outbox_oldest_entry_age_seconds",
        "Seconds since the oldest operation that is not settled was enqueued; 0 when there is none.",
        labels=["destination"],
    )
    for destination in _destinations(seen):
        ages = [depth.oldest_age_s for depth in seen.depths if depth.destination == destination]
        family.add_metric([destination], max(ages, default=0.0))
    return family


def _destinations(seen: Lag) -> list[str]:
    # One that is no longer registered counts while it has entries.
    return list(dict.fromkeys((*seen.destinations, *(depth.destination for depth in seen.depths))))


@dataclass(frozen=True, slots=True)
class MetricsServer:
    """A running server; `url` is where it answers."""

    url: str
    _server: WSGIServer
    _engine: Engine

    def close(self) -> None:
        """Stop answering and close the connections."""
        self._server.shutdown()
        self._server.server_close()
        self._engine.dispose()


def serve(database_url: str, host: str, port: int) -> MetricsServer:
    """Serve the metrics from a thread of this process; port 0 takes a free one. Raises a Failure for a taken one."""
    # Two scrapers may come at once; a third waits.
    engine = worker_engine(database_url, pool_size=2, application="oncebox metrics")
    try:
        server = make_server(host, port, application(engine), _Server, _SilentHandler)
    except OSError as error:
        engine.dispose()
        raise failures.Failure(
            ExitCode.ERROR,
            "port_taken",
            f"Cannot serve metrics at {host}:{port}: {error.strerror or error}.",
            "Choose another port with --metrics-port; 0 takes a free one.",
        ) from None
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    url = f"http://{host}:{server.server_port}/metrics"
    _log.info("metrics_served", extra={"fields": {"url": url}})
    return MetricsServer(url, server, engine)


def application(engine: Engine) -> _WsgiApp:
    """The WSGI application: `/metrics`, or 500 with the reason when the database does not answer."""
    registry = CollectorRegistry()
    registry.register(OutboxCollector(engine))

    def answer(environment: _Environment, start_response: _StartResponse) -> Iterable[bytes]:
        if environment.get("PATH_INFO") != "/metrics":
            start_response("404 Not Found", _PLAIN)
            return [b"The metrics are at /metrics.\n"]
        try:
            body = generate_latest(registry)
        except Exception as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            _log.error("metrics_failed", extra={"fields": {"reason": reason}})
            start_response("500 Internal Server Error", _PLAIN)
            return [f"The database cannot be read, so there are no numbers: {reason}\n".encode()]
        start_response("200 OK", [("Content-Type", CONTENT_TYPE_LATEST)])
        return [body]

    return answer


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _SilentHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """A scrape every few seconds is not worth a line."""
