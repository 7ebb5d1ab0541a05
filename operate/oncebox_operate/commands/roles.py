"""`relay` and `worker`: the two kinds of process that deliver what is in the outbox."""

from collections.abc import Callable, Mapping
from typing import Annotated, Final, Literal, TypeVar

from cyclopts import Group, Parameter
from pydantic import ValidationError

from oncebox_models.arguments import Fault
from oncebox_operate import metrics, options
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.failures import Failure
from oncebox_operate.options import BrokerUrl, DatabaseUrl, NotesUrl
from oncebox_worker import main as roles
from oncebox_worker.settings import RelaySettings, RoleSettings, WorkerSettings

_METRICS: Final = Group("Metrics", sort_key=40)
_Settings = TypeVar("_Settings", bound=RoleSettings)

_EXAMPLES: Final = {
    "database_url": "postgresql://postgres@127.0.0.1:5432/oncebox",
    "broker_url": "amqp://guest:guest@127.0.0.1:5672",
    "notes_url": "http://127.0.0.1:8320",
    "token": "oncebox_…, from: oncebox token create --tenant demo --principal worker --delegate",
}


def relay(
    *,
    metrics_port: Annotated[
        int | None,
        Parameter(
            name="--metrics-port",
            env_var="ONCEBOX_METRICS_PORT",
            group=_METRICS,
            help="Serve Prometheus metrics at this port; 0 takes a free one. [default: do not]",
        ),
    ] = None,
    metrics_host: Annotated[
        str,
        Parameter(
            name="--metrics-host",
            env_var="ONCEBOX_METRICS_HOST",
            group=_METRICS,
            help="Address that the metrics are served at; 0.0.0.0 for every one.",
        ),
    ] = "127.0.0.1",
    database_url: DatabaseUrl = None,
    broker_url: BrokerUrl = None,
) -> int:
    """Hand due operations to the broker.

    Runs until SIGTERM or Ctrl-C; run as many as you like. Logs are JSON on stderr; every other setting is a variable
    `ONCEBOX_…`. With the broker down it waits, and nothing is lost or spent.

    * `oncebox relay`
    * `oncebox relay --metrics-port 9464`
    """
    server = options.sender_server(database_url)
    settings = _settings(RelaySettings, {"database_url": server.libpq, "broker_url": broker_url})

    def serve_metrics() -> None:
        if metrics_port is not None:
            metrics.serve(server.libpq, metrics_host, metrics_port)

    return roles.run_relay(settings, serve_metrics)


def worker(
    *,
    concurrency: Annotated[
        int | None,
        Parameter(
            name="--concurrency",
            env_var="ONCEBOX_CONCURRENCY",
            help="Chunks delivered at once by this process. [default: 8]",
        ),
    ] = None,
    pool: Annotated[
        Literal["threads", "prefork"],
        Parameter(name="--pool", env_var="ONCEBOX_POOL", help="How they run side by side."),
    ] = "threads",
    database_url: DatabaseUrl = None,
    broker_url: BrokerUrl = None,
    notes_url: NotesUrl = None,
) -> int:
    """Deliver operations to the note service.

    Runs until SIGTERM or Ctrl-C, then finishes what it has begun; run as many as you like. The token for the note
    service comes from `ONCEBOX_TOKEN`. Logs are JSON on stderr; every other setting is a variable `ONCEBOX_…`.

    * `oncebox worker`
    * `oncebox worker --concurrency 4 --pool prefork`
    """
    given = {
        "database_url": options.sender_server(database_url).libpq,
        "broker_url": broker_url,
        "notes_url": notes_url,
        "concurrency": concurrency,
    }
    return roles.run_worker(_settings(WorkerSettings, given), pool=pool)


def _settings(kind: Callable[..., _Settings], given: Mapping[str, object]) -> _Settings:
    """Settings from the options, and from variables for the rest. Raises a usage failure with every fault."""
    try:
        return kind(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        faults = [
            _fault(str(fault["loc"][0]) if fault["loc"] else "", fault["type"], fault["msg"])
            for fault in error.errors(include_url=False, include_input=False)
        ]
    raise Failure(ExitCode.USAGE, "usage", "This process cannot start: settings are wrong.", faults=faults)


def _fault(field: str, kind: str, message: str) -> Fault:
    variable = f"ONCEBOX_{field.upper()}"
    if kind == "missing":
        return Fault(variable, f"is not set; for example {_EXAMPLES.get(field, 'see the documentation')}")
    return Fault(variable, message)
