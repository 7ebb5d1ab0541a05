"""After the run: everything that anybody committed, against what both databases hold, by SQL."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.proof.chaos.agents import Kept
from tests.proof.chaos.parties.installation import ONCEBOX, Installation
from tests.proof.chaos.wishes import PRINCIPAL, TENANT, Wish
from tests.proof.history import checker, recorder
from tests.proof.history.ledger import read_ledger

_VERIFY_S: Final = 600.0
_LISTED: Final = 20

_OPERATIONS: Final = "select operation_id, coalesce(final, 'open'), reason from oncebox.operation"
_FINDINGS: Final = "select operation_id from chaos_finding"
_NOTES: Final = """
    select operation_key, count(*), min(created_at) from note_version
    where tenant = %s and principal = %s group by operation_key"""
_FOREIGN: Final = "select count(*) from note_version where tenant <> %s or principal <> %s"
_VIOLATIONS: Final = "select kind, count(*) from oncebox.violation group by kind"
# From the commit that an agent made to the commit that holds the receipt, by the clock of the database that made both.
_LATENCIES: Final = """
    select percentile_cont(array[0.5, 0.99]) within group (order by s), max(s), count(*)
    from (
      select extract(epoch from pg_xact_commit_timestamp(o.xmin) - pg_xact_commit_timestamp(f.xmin))::float8 as s
      from oncebox.operation o join chaos_finding f using (operation_id) where o.final = 'saved'
    ) as saved"""
_QUIET: Final = """
    select max(at - before) from (
      select at, lag(at) over (order by at) as before from (
        select extract(epoch from pg_xact_commit_timestamp(xmin))::float8 as at
        from oncebox.operation where final = 'saved'
      ) as settled
    ) as gaps"""
_RECONCILED: Final = """
    select count(distinct o.id) from oncebox.operation o join oncebox.call_outcome x using (id)
    where o.final is not null and x.outcome = 'unknown'"""


@dataclass(slots=True)
class Verdict:
    """What was counted, and `doubts`: everything that is not as promised, in words; empty when all holds."""

    operations: int = 0
    committed: int = 0
    rolled_back: int = 0
    states: dict[str, int] = field(default_factory=dict[str, int])
    notes: int = 0
    lost: int = 0
    duplicates: int = 0
    left_behind: int = 0
    false_statements: int = 0
    statements: dict[str, int] = field(default_factory=dict[str, int])
    reconciled: int = 0
    p50_s: float = 0.0
    p99_s: float = 0.0
    max_s: float = 0.0
    longest_without_a_receipt_s: float = 0.0
    verify: dict[str, Any] = field(default_factory=dict[str, Any])
    doubts: list[str] = field(default_factory=list[str])

    def doubt(self, what: str, which: Sequence[object]) -> int:
        """Note it if there are any; how many there are."""
        if which:
            shown = [str(one) for one in which[:_LISTED]] + ["…"] * (len(which) > _LISTED)
            between = "\n  " if any("\n" in one for one in shown) else ", "
            self.doubts.append(
                f"{len(which)} {what}:{between if between != ', ' else ' '}{between.join(shown)}"
            )
        return len(which)


def judge(installation: Installation, kept: Kept, statements: Path) -> Verdict:
    """Everything must have come to rest: both databases are read as they are now."""
    verdict = Verdict()
    with (
        psycopg.connect(installation.sender_database.url, autocommit=True) as sender,
        psycopg.connect(installation.notes_database.url, autocommit=True) as notes,
    ):
        _count(verdict, kept, sender, notes)
        _measure(verdict, sender)
    _check_history(verdict, installation, statements)
    _verify(verdict, installation)
    return verdict


Connection = psycopg.Connection[tuple[Any, ...]]


def _count(verdict: Verdict, kept: Kept, sender: Connection, notes: Connection) -> None:
    rows = sender.execute(_OPERATIONS).fetchall()
    operations: dict[str, str] = {one: state for one, state, _ in rows}
    findings = {one for (one,) in sender.execute(_FINDINGS).fetchall()}
    held = {key: (count, at) for key, count, at in notes.execute(_NOTES, [TENANT, PRINCIPAL]).fetchall()}
    ((foreign,),) = notes.execute(_FOREIGN, [TENANT, PRINCIPAL]).fetchall()
    committed, rolled_back = kept.ids("committed"), kept.ids("rolled back")
    verdict.operations, verdict.committed, verdict.rolled_back = (
        len(operations),
        len(committed),
        len(rolled_back),
    )
    verdict.states = dict(
        Counter(state if reason is None else f"{state}: {reason}" for _, state, reason in rows)
    )
    verdict.notes = sum(count for count, _ in held.values()) + foreign
    verdict.lost = verdict.doubt(
        "operations are lost: committed, and neither a note nor a proven end",
        sorted(
            one
            for one in committed
            if one not in held and operations.get(one) not in ("refused", "not_saved")
        ),
    )
    verdict.duplicates = verdict.doubt(
        "operations have more than one note", sorted(one for one, (count, _) in held.items() if count > 1)
    )
    verdict.left_behind = verdict.doubt(
        "operations were rolled back, and something is left of them",
        sorted(rolled_back & (operations.keys() | findings | held.keys())),
    )
    verdict.doubt("operations nobody committed", sorted(operations.keys() - committed))
    verdict.doubt("notes nobody wanted", sorted(held.keys() - committed) + ["of others"] * foreign)
    verdict.doubt(
        "transactions are there by half: an operation without its finding, or the reverse",
        sorted(findings ^ operations.keys()),
    )
    verdict.doubt(
        "operations said to be saved have no note, or the reverse",
        sorted(one for one, state in operations.items() if (state == "saved") != (one in held)),
    )
    verdict.doubt(
        "operations are not settled, or need a person, or were refused though nobody may refuse them",
        sorted(
            f"{one} ({state})" for one, state in operations.items() if state not in ("saved", "not_saved")
        ),
    )
    verdict.doubt("agents' wishes have no end", sorted(kept.ids("begun")))
    verdict.doubt(
        "notes came in another order than their key's operations were committed", out_of_order(kept, held)
    )
    verdict.doubt("kinds of contradictions were recorded", sender.execute(_VIOLATIONS).fetchall())


def out_of_order(kept: Kept, held: Mapping[str, tuple[int, Any]]) -> list[str]:
    """Of one ordering key, an agent's wishes came one after another; so must their notes."""
    latest: dict[str, Any] = {}
    wrong: list[str] = []
    for one, did in kept.wishes:
        if did != "committed" or one.ordering_key is None:
            continue
        for name, made_at in _made(one, held):
            if made_at < latest.get(one.ordering_key, made_at):
                wrong.append(name)
            latest[one.ordering_key] = made_at
    return wrong


def _made(one: Wish, held: Mapping[str, tuple[int, Any]]) -> list[tuple[str, Any]]:
    return [(name, held[name][1]) for name in one.operation_ids if name in held]


def _measure(verdict: Verdict, sender: Connection) -> None:
    ((ranks, most, count),) = sender.execute(_LATENCIES).fetchall()
    if count:
        (verdict.p50_s, verdict.p99_s), verdict.max_s = ranks, most
    ((quiet,),) = sender.execute(_QUIET).fetchall()
    verdict.longest_without_a_receipt_s = quiet or 0.0
    ((verdict.reconciled,),) = sender.execute(_RECONCILED).fetchall()


def _check_history(verdict: Verdict, installation: Installation, statements: Path) -> None:
    ledger = read_ledger(installation.sender_database.url, installation.notes_database.url)
    said = list(recorder.read(statements))
    verdict.statements = checker.tally(said)
    verdict.false_statements = verdict.doubt("false statements", checker.check(said, ledger))


def _verify(verdict: Verdict, installation: Installation) -> None:
    done = subprocess.run(
        [*ONCEBOX, "verify", "--deep", "--json"],
        env={**os.environ, **installation.environment},
        capture_output=True,
        text=True,
        timeout=_VERIFY_S,
        check=False,
    )
    lines = done.stdout.splitlines()
    verdict.verify = json.loads(lines[-1]) if lines else {}
    if done.returncode != 0:
        problems = verdict.verify.get("problems", [])
        verdict.doubts.append(
            f"oncebox verify --deep: exit {done.returncode}: {problems[:_LISTED]} {done.stderr[-500:]}"
        )
