"""One run from the first process to the verdict."""

import time
import traceback
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from tests.proof.chaos.agents import SKEWED_AGENTS, Agents
from tests.proof.chaos.evidence import save_evidence
from tests.proof.chaos.parties.installation import LEASE_S, Installation, versions
from tests.proof.chaos.plan import Size, plan
from tests.proof.chaos.report import Run, doubts
from tests.proof.chaos.striking import Striking
from tests.proof.chaos.verdict import Verdict, judge
from tests.proof.chaos.watch import Watch, tell
from tests.proof.chaos.witnesses import Witnesses

_REPAIR_S: Final = 90.0
_CATCH_UP_S: Final = 90.0
_DRAIN_S: Final = 120.0
"""Longest time for everything to come to rest once nothing breaks any more: several leases."""


def run(folder: Path, size: Size, started_at: datetime) -> tuple[Run, Verdict]:
    """Everything that happened, and the verdict. Raises what keeps a run from its start or from a verdict."""
    began = time.monotonic()
    statements = folder / "statements"
    statements.mkdir()
    tell(f"Starting everything in {folder}.")
    with Installation(folder, size.operations) as installation:
        agents = Agents(installation, size, statements)
        striking = Striking(installation, agents, plan(size, LEASE_S))
        watch = Watch(installation, agents, striking)
        agents.start()
        tell(f"All run after {time.monotonic() - began:.0f} s.")
        striking.start()
        with Witnesses(installation, agents, statements) as witnesses:
            while agents.now_s() < size.seconds or (
                striking.missing() and agents.now_s() < size.longest_seconds
            ):
                watch.turn()
            agents.stop()
            loaded_s = agents.now_s()
            striking.stop(_REPAIR_S)
            installation.network.heal()
            tell(f"Nothing breaks any more, after {agents.now_s():.0f} s.")
            _wait(watch, lambda: agents.done, _CATCH_UP_S)
            stopped = time.monotonic()
            _wait(watch, watch.drained, _DRAIN_S)
            drained_s = time.monotonic() - stopped
        watch.close()
        tell(f"Everything has come to rest after {time.monotonic() - began:.0f} s; looking at what there is.")
        verdict = judge(installation, agents.kept(), statements)
        tell(f"Judged after {time.monotonic() - began:.0f} s.")
        happened = Run(
            size=size,
            loaded_s=loaded_s,
            started_at=started_at,
            seconds=time.monotonic() - began,
            drained_s=drained_s,
            faults=striking.faults,
            skewed=installation.skewed() | SKEWED_AGENTS,
            restarted={role.name: role.ended_by_itself for role in installation.roles},
            versions=versions(installation),
        )
        for failure in [*striking.failures, *witnesses.failures]:
            verdict.doubts.append("".join(traceback.format_exception(failure)[-3:]).strip())
        for role in [*installation.roles, *agents.roles]:
            if role.unclean_ends:
                verdict.doubts.append(f"{role.name} was asked to end, and ended with {role.unclean_ends}")
        if doubts(happened, verdict):
            save_evidence(installation, folder / "evidence")
        return happened, verdict


def _wait(watch: Watch, condition: Callable[[], bool], seconds: float) -> None:
    """Until it holds or the time is up; what is missing then, the verdict says."""
    limit = time.monotonic() + seconds
    while not condition() and time.monotonic() < limit:
        watch.turn()
