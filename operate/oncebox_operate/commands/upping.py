"""`up`: everything on this machine, from one command to Ctrl-C."""

import os
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Group, Parameter

from oncebox_operate import failures
from oncebox_operate.database_failures import Server
from oncebox_operate.embedded import EmbeddedError
from oncebox_operate.embedded.errors import FolderInUse
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.failures import Failure
from oncebox_operate.options import WHERE
from oncebox_operate.output import AS_TEXT, Output, stderr, stdout
from oncebox_operate.up import brokers, state_file
from oncebox_operate.up.folder import default_place
from oncebox_operate.up.plan import Plan
from oncebox_operate.up.run import Run
from oncebox_operate.up.screen import Screen
from oncebox_operate.up.tending import PartLost

_HOW: Final = Group("How", sort_key=30)
_MOST_WORKERS: Final = 64

GivenBroker = Annotated[
    str | None,
    Parameter(
        name=("--broker-url", "--broker"),
        env_var="ONCEBOX_BROKER_URL",
        group=WHERE,
        help="Use this broker: amqp://user@host:5672 or redis://host:6379. [default: one is started]",
    ),
]
GivenDatabase = Annotated[
    str | None,
    Parameter(
        name="--database-url",
        env_var="ONCEBOX_DATABASE_URL",
        group=WHERE,
        help="Use this PostgreSQL: postgresql://user@host/oncebox. [default: one is started]",
    ),
]
Workers = Annotated[
    int,
    Parameter(name="--workers", env_var="ONCEBOX_WORKERS", group=_HOW, help="How many worker processes."),
]


def up(
    *,
    workers: Workers = 2,
    data: Annotated[
        Path | None,
        Parameter(
            name="--data",
            env_var=state_file.DATA_VARIABLE,
            group=WHERE,
            help="Where the data is kept. [default: .oncebox in this folder]",
        ),
    ] = None,
    port: Annotated[
        int | None,
        Parameter(
            name="--port",
            env_var="ONCEBOX_NOTES_PORT",
            group=_HOW,
            help="Port of the note service. [default: 8320, or a free one when it is taken]",
        ),
    ] = None,
    broker_url: GivenBroker = None,
    database_url: GivenDatabase = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Run everything on this machine.

    PostgreSQL, a broker, the note service, a relay and workers, as children of this process; with `--database-url` and
    `--broker` yours are used instead. Commands in another terminal find it by themselves. Ctrl-C finishes what is under
    way and ends everything, a second one at once; the data stays, and the next `up` goes on with it. A part that ends by
    itself is started again, with growing delays; when it ends six times in a row, `up` ends and shows the end of its
    log. For development and demonstration.

    * `oncebox up`
    * `oncebox up --workers 4 --data ~/oncebox`
    * `oncebox up --broker amqp://guest:guest@127.0.0.1:5672 --database-url postgresql://postgres@127.0.0.1/oncebox`
    """
    plan = Plan(
        data=data or default_place(Path.cwd(), os.environ),
        workers=checked_workers(workers),
        database=given_database(database_url),
        broker_url=given_broker(broker_url),
        notes_port=port,
        environment=os.environ,
    )
    # Without --json the screen is the data; with it, it is progress.
    screen = Screen(stderr() if output.json else stdout())
    try:
        Run(plan, screen, output).to_its_end()
    except (EmbeddedError, PartLost) as error:
        raise part_failed(error) from error
    finally:
        screen.close()
    return ExitCode.OK


def checked_workers(workers: int) -> int:
    """Raises a usage failure for a number of workers that is none."""
    if not 1 <= workers <= _MOST_WORKERS:
        raise failures.usage(f"--workers is {workers}; it must be from 1 to {_MOST_WORKERS}.")
    return workers


def given_database(url: str | None) -> Server | None:
    """The server that was named, if one was. Raises a usage failure for what is no PostgreSQL URL."""
    return None if url is None else Server.parse(url, "ONCEBOX_DATABASE_URL")


def given_broker(url: str | None) -> str | None:
    """The broker that was named, if one was. Raises a usage failure for what is no broker's URL."""
    return None if url is None else brokers.checked_url(url)


def part_failed(error: EmbeddedError | PartLost) -> Failure:
    """What a part says of its failure."""
    text = str(error)
    sentence = text[:1].upper() + text[1:]
    if isinstance(error, FolderInUse):
        return Failure(
            ExitCode.ERROR,
            "in_use",
            f"{sentence}.",
            "Other commands find the one that runs by themselves: oncebox lag",
        )
    return Failure(ExitCode.ERROR, "part_failed", sentence)
