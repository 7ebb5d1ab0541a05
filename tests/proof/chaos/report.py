"""The report of a run: what was done, what broke, what came of it, as JSON and as Markdown for people."""

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.proof.chaos.kinds import FaultKind, Lane
from tests.proof.chaos.plan import Size
from tests.proof.chaos.striking import Fault
from tests.proof.chaos.verdict import Verdict

_ROOT: Final = Path(__file__).parents[3]
_ONLY_ONES: Final = (Lane.NOTES, Lane.BROKER, Lane.SENDER_DATABASE, Lane.NOTES_DATABASE)


@dataclass(frozen=True, slots=True)
class Run:
    """What happened beside the verdict. loaded_s: how long operations were enqueued. skewed: whose clock was wrong by how many seconds. restarted: exit statuses of
    processes that ended by themselves, by seat. drained_s: from the last enqueue to the last settle."""

    size: Size
    loaded_s: float
    started_at: datetime
    seconds: float
    drained_s: float
    faults: Sequence[Fault]
    skewed: Mapping[str, int]
    restarted: Mapping[str, Sequence[int]]
    versions: Mapping[str, str]


def doubts(run: Run, verdict: Verdict) -> list[str]:
    """Everything that is not as it was promised; empty: the run holds."""
    size = run.size
    struck = [fault for fault in run.faults if fault.in_flight]
    met = {kind: sum(fault.kind is kind for fault in struck) for kind in FaultKind}
    few = [
        f"{kind} struck operations in flight {count} times, not {size.required(kind)}"
        for kind, count in met.items()
        if count < size.required(kind)
    ]
    if len(struck) < size.required_faults:
        few.append(f"only {len(struck)} faults struck operations in flight, not {size.required_faults}")
    wanted = int(run.loaded_s * size.rate * 0.93)
    if verdict.committed < wanted:
        few.append(f"only {verdict.committed} operations were committed, not {wanted}")
    return [*verdict.doubts, *few]


def document(run: Run, verdict: Verdict) -> dict[str, Any]:
    """Everything, for machines. Durations in seconds."""
    wrong = doubts(run, verdict)
    return {
        "ok": not wrong,
        "date": run.started_at.astimezone(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "seed": run.size.seed,
        "machine": machine(),
        "versions": dict(run.versions),
        "load_seconds": round(run.loaded_s, 1),
        "rate": run.size.rate,
        "seconds": round(run.seconds, 1),
        "drained_seconds": round(run.drained_s, 1),
        "operations": verdict.operations,
        "rolled_back": verdict.rolled_back,
        "states": verdict.states,
        "notes": verdict.notes,
        "lost": verdict.lost,
        "duplicates": verdict.duplicates,
        "left_behind": verdict.left_behind,
        "false_statements": verdict.false_statements,
        "statements": verdict.statements,
        "statements_checked": sum(n for kind, n in verdict.statements.items() if kind != "none"),
        "reconciled": verdict.reconciled,
        "commit_to_receipt_s": {
            "p50": round(verdict.p50_s, 3),
            "p99": round(verdict.p99_s, 3),
            "max": round(verdict.max_s, 3),
        },
        "longest_without_a_receipt_s": round(verdict.longest_without_a_receipt_s, 1),
        "faults": len([fault for fault in run.faults if fault.in_flight]),
        "faults_without_effect": len([fault for fault in run.faults if not fault.in_flight]),
        "faults_by_kind": _by_kind(run.faults),
        "clock_skew_s": dict(run.skewed),
        "longest_unavailable": _longest_unavailable(run.faults),
        "ended_by_themselves": {name: list(codes) for name, codes in run.restarted.items() if codes},
        "verify": {name: value for name, value in verdict.verify.items() if name != "problems"},
        "doubts": wrong,
        "strikes": [
            {
                "kind": str(fault.kind),
                "began_s": round(fault.began_s, 2),
                "ended_s": round(fault.ended_s, 2),
                "in_flight": fault.in_flight,
                "how": fault.how,
            }
            for fault in sorted(run.faults, key=lambda one: one.began_s)
        ],
    }


def _longest_unavailable(faults: Sequence[Fault]) -> dict[str, dict[str, Any]]:
    """Of each party that there is only one of: its longest fault, until it worked again."""
    found: dict[str, dict[str, Any]] = {}
    for lane in _ONLY_ONES:
        spans = [fault for fault in faults if fault.kind.lane is lane and fault.in_flight]
        if spans:
            longest = max(spans, key=lambda fault: fault.ended_s - fault.began_s)
            seconds = round(longest.ended_s - longest.began_s, 1)
            found[str(lane)] = {"kind": str(longest.kind), "seconds": seconds, "how": longest.how}
    return found


def _by_kind(faults: Sequence[Fault]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for kind in FaultKind:
        struck = [fault.in_flight for fault in faults if fault.kind is kind and fault.in_flight]
        found[str(kind)] = {
            "count": len(struck),
            "in_flight_least": min(struck, default=0),
            "in_flight_most": max(struck, default=0),
            "in_flight_sum": sum(struck),
        }
    return found


def markdown(told: Mapping[str, Any]) -> str:
    """The same for people."""
    latency, machine_ = told["commit_to_receipt_s"], told["machine"]
    rows = [
        ("verdict", "**holds**" if told["ok"] else "**DOES NOT HOLD**"),
        ("date, commit, seed", f"{told['date']}, {told['commit']}, {told['seed']}"),
        ("machine", f"{machine_['cores']} cores, {machine_['memory_gib']} GiB, {machine_['cpu']}"),
        ("versions", ", ".join(f"{name} {value}" for name, value in told["versions"].items())),
        ("load", f"{told['load_seconds']:g} s at {told['rate']:g} operations a second"),
        ("operations committed", f"{told['operations']:,} ({told['rolled_back']:,} more were rolled back)"),
        ("how they ended", ", ".join(f"{n:,} {state}" for state, n in sorted(told["states"].items()))),
        ("notes", f"{told['notes']:,}"),
        ("lost", told["lost"]),
        ("duplicates", told["duplicates"]),
        ("false statements", f"{told['false_statements']} of {told['statements_checked']:,} checked"),
        ("unknown, then settled by proof", f"{told['reconciled']:,}"),
        ("faults with operations in flight", told["faults"]),
        (
            "commit → receipt under faults",
            f"p50 {latency['p50']:.3f} s, p99 {latency['p99']:.3f} s, longest {latency['max']:.1f} s",
        ),
        ("longest time without any receipt", f"{told['longest_without_a_receipt_s']} s"),
        ("drained after the last enqueue", f"{told['drained_seconds']} s"),
        (
            "clocks that were wrong",
            ", ".join(f"{who} {by:+d} s" for who, by in told["clock_skew_s"].items()),
        ),
    ]
    lines = ["# Chaos run", "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    lines += ["", "| fault | times | operations in flight (least, most) |", "|---|---:|---:|"]
    lines += [
        f"| {kind} | {met['count']} | {met['in_flight_least']}, {met['in_flight_most']} |"
        for kind, met in told["faults_by_kind"].items()
    ]
    lines += ["", "| longest away, the way back included | seconds | by |", "|---|---:|---|"]
    lines += [
        f"| {party} | {one['seconds']} | {one['kind']} ({one['how']}) |"
        for party, one in told["longest_unavailable"].items()
    ]
    if told["doubts"]:
        lines += ["", "## What does not hold", "", *(f"- {doubt}\n" for doubt in told["doubts"])]
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """What it ran on."""
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages * page / 2**30, 1),
        "cpu": _cpu(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or "unknown"


def commit() -> str:
    """Of the source that ran; with a mark when it was changed."""
    try:
        revision = _git("rev-parse", "--short", "HEAD")
        return f"{revision}{'+changes' if _git('status', '--porcelain') else ''}"
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
