"""`demo`: a story of about a minute that ends with a proof, and the three boundaries."""

import os
import signal
import time
from types import FrameType
from typing import Annotated, Final

from cyclopts import Group, Parameter
from rich.text import Text

from oncebox_operate import failures
from oncebox_operate.commands.upping import (
    GivenBroker,
    GivenDatabase,
    Workers,
    checked_workers,
    given_broker,
    given_database,
    part_failed,
)
from oncebox_operate.demo import boundaries, corpus
from oncebox_operate.demo.play import play
from oncebox_operate.demo.screen import DemoScreen
from oncebox_operate.demo.script import DEFAULT_FAULTS, DEFAULT_OPS, DEFAULT_RATE, Script, faults_named
from oncebox_operate.demo.stage import Stage
from oncebox_operate.embedded import EmbeddedError
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.output import AS_TEXT, Output, stderr, stdout
from oncebox_operate.up.tending import PartLost

_WHAT: Final = Group("What happens", sort_key=10)
_MOST_OPS: Final = 100_000


def demo(
    *,
    ops: Annotated[
        int, Parameter(name="--ops", env_var="ONCEBOX_DEMO_OPS", group=_WHAT, help="Operations to commit.")
    ] = DEFAULT_OPS,
    rate: Annotated[
        float,
        Parameter(name="--rate", env_var="ONCEBOX_DEMO_RATE", group=_WHAT, help="How many of them a second."),
    ] = DEFAULT_RATE,
    faults: Annotated[
        str,
        Parameter(
            name="--faults",
            env_var="ONCEBOX_DEMO_FAULTS",
            group=_WHAT,
            help="What breaks, separated by commas; repeated_requests can be added; none leaves all whole.",
        ),
    ] = ",".join(DEFAULT_FAULTS),
    seed: Annotated[
        int,
        Parameter(
            name="--seed",
            env_var="ONCEBOX_DEMO_SEED",
            group=_WHAT,
            help="Decides when what breaks, and what is rolled back.",
        ),
    ] = 1,
    exercise: Annotated[
        bool,
        Parameter(
            name="--exercise",
            env_var="ONCEBOX_DEMO_EXERCISE",
            group=_WHAT,
            show_default=False,
            negative="",
            help="Play the three boundaries instead: before the commit, after it, and many deliveries at once.",
        ),
    ] = False,
    workers: Workers = 2,
    broker_url: GivenBroker = None,
    database_url: GivenDatabase = None,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Watch notes arrive exactly once while everything breaks.

    Starts an installation of its own, lets an agent save research notes while replies get lost, workers, the note
    service and the broker are killed, and counts the notes at the end, by SQL in the note service's database. Exits
    with 8 when anything is off: also when a fault struck nothing. Nothing is left of it afterwards; when it fails,
    its data and logs are kept, and named. A broker of yours is not killed: its connections are cut. On a PostgreSQL of
    yours it makes two databases, and drops them.

    * `oncebox demo`
    * `oncebox demo --seed 7 --json`
    * `oncebox demo --faults lost_replies,killed_workers --ops 100`
    * `oncebox demo --exercise`
    """
    began = time.monotonic()
    script = _script(ops, rate, faults, seed)
    screen = DemoScreen(stderr() if output.json else stdout(), script)
    stage = Stage(
        workers=checked_workers(workers),
        database=given_database(database_url),
        broker_url=given_broker(broker_url),
        environment=os.environ,
        reporter=screen,
    )
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        with stage:
            try:
                ok = (
                    _exercise(stage, screen, output)
                    if exercise
                    else _play(stage, script, screen, output, began)
                )
            except Exception:
                stage.keep()
                raise
            if not ok:
                stage.keep()
    except (EmbeddedError, PartLost) as error:
        raise part_failed(error) from error
    finally:
        screen.close()
        if (left := stage.left()) is not None:
            output.note(left)
    return ExitCode.OK if ok else ExitCode.CHECK_FAILED


def _play(stage: Stage, script: Script, screen: DemoScreen, output: Output, began: float) -> bool:
    proof = play(stage, script, corpus.load(), screen, began)
    screen.proof(proof)
    if output.json:
        output.data(proof.shape(script), Text)
    return not proof.doubts(script)


def _exercise(stage: Stage, screen: DemoScreen, output: Output) -> bool:
    found = list(boundaries.play(stage, screen))
    if output.json:
        output.data(boundaries.shape(found), Text)
    return all(boundary.ok for boundary in found)


def _script(ops: int, rate: float, faults: str, seed: int) -> Script:
    if not 2 <= ops <= _MOST_OPS:
        raise failures.usage(f"--ops is {ops}; it must be from 2 to {_MOST_OPS}.")
    if not 0.1 <= rate <= 1000:
        raise failures.usage(f"--rate is {rate:g}; it must be from 0.1 to 1000.")
    try:
        chosen = faults_named([name for name in faults.split(",") if name.strip()])
    except ValueError as error:
        raise failures.usage(f"--faults names what there is not: {error}.") from None
    return Script(ops=ops, rate=rate, faults=chosen, seed=seed)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
