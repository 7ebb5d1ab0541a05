"""The end of a demonstration: what both sides hold, counted, and whether that is what was promised."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oncebox_operate import shapes
from oncebox_operate.demo import statements
from oncebox_operate.demo.script import FaultKind, Script
from oncebox_operate.demo.stage import Stage
from oncebox_operate.demo.strikes import SENDS, Struck, replays_in
from oncebox_operate.ledger import Key
from oncebox_operate.options import DEFAULT_DESTINATION
from oncebox_operate.up.plan import PRINCIPAL, TENANT
from oncebox_operate.verification import Verification
from oncebox_outbox import insights


@dataclass(frozen=True, slots=True)
class Proof:
    """What was counted. `left_behind`: rows and notes of transactions that were rolled back. `problems`: what `verify`
    found wrong, in words."""

    operations: int
    rolled_back: int
    saved: int
    open: int
    unknown: int
    needs_review: int
    notes: int
    duplicates: int
    lost: int
    left_behind: int
    replays: int
    reconciled: int
    attempts: int
    faults: Mapping[FaultKind, Struck]
    problems: Sequence[str]
    seconds: float

    def doubts(self, script: Script) -> list[str]:
        """Everything that is not as it was promised, in words; empty: the demonstration holds."""
        wanted = (
            (self.operations, script.ops, "operations were committed"),
            (self.saved, self.operations, "are saved"),
            (self.notes, self.saved, "notes are there"),
        )
        doubts = [
            f"{found} {what}, and it should be {right}" for found, right, what in wanted if found != right
        ]
        none = (
            (self.duplicates, "notes are there twice"),
            (self.lost, "notes are lost"),
            (self.left_behind, "traces are left of what was rolled back"),
            (self.open, "operations are still open"),
            (self.needs_review, "operations need a person's review"),
        )
        doubts += [f"{found} {what}" for found, what in none if found]
        doubts += self.problems
        enough = (
            (self.rolled_back, script.required_rolled_back, "transactions were rolled back"),
            (self.reconciled, script.required_reconciled, "operations of unknown outcome were reconciled"),
        )
        doubts += [f"only {found} {what}, not {least}" for found, least, what in enough if found < least]
        return doubts + [
            f"{kind.label} struck operations in flight {struck.in_flight} times, not {script.required(kind)}"
            for kind, struck in self.faults.items()
            if struck.in_flight < script.required(kind)
        ]

    def shape(self, script: Script) -> shapes.Demo:
        """What `demo --json` ends with."""
        return {
            "operations": self.operations,
            "rolled_back": self.rolled_back,
            "saved": self.saved,
            "notes": self.notes,
            "duplicates": self.duplicates,
            "lost": self.lost,
            "unknown": self.unknown,
            "needs_review": self.needs_review,
            "replays": self.replays,
            "reconciled": self.reconciled,
            "attempts": self.attempts,
            "faults": {
                str(kind): {"count": struck.count, "in_flight": struck.in_flight}
                for kind, struck in self.faults.items()
            },
            "doubts": self.doubts(script),
            "seed": script.seed,
            "seconds": round(self.seconds, 1),
            "ok": not self.doubts(script),
        }


def collect(
    stage: Stage, rolled_back: Sequence[str], faults: Mapping[FaultKind, Struck], seconds: float
) -> Proof:
    """Count on both sides. The receiver's tables are counted by `ledger`, which imports nothing of ours."""
    with stage.engine.connect() as connection:
        rows = connection.execute(statements.OPERATIONS).all()
        lag = insights.lag(connection)
    keys = [Key(TENANT, PRINCIPAL, row.operation_id) for row in rows]
    counted = stage.ledger.counted(keys, [row.state == "saved" for row in rows])
    # Whatever else lies there is one note too many: nobody but this demonstration writes into this database.
    strays = stage.ledger.count() - counted.notes
    gone = [Key(TENANT, PRINCIPAL, operation_id) for operation_id in rolled_back]
    verified = Verification(stage.engine, DEFAULT_DESTINATION, stage.ledger, None, lambda _: None).run()
    return Proof(
        operations=len(rows),
        rolled_back=len(rolled_back),
        saved=sum(row.state == "saved" for row in rows),
        open=sum(row.state == "open" for row in rows),
        unknown=lag.unknown,
        needs_review=sum(row.state == "needs_review" for row in rows),
        notes=counted.notes + strays,
        duplicates=counted.duplicates + strays,
        lost=counted.lost,
        left_behind=stage.ask(statements.LEFT_BEHIND, ids=list(rolled_back))
        + stage.ledger.counted(gone, [False] * len(gone)).notes,
        replays=sum(replays_in(exchange) for exchange in stage.proxy.requests(SENDS)),
        reconciled=stage.ask(statements.RECONCILED),
        attempts=stage.ask(statements.ATTEMPTS),
        faults=faults,
        problems=[f"{problem.operation_id}: {problem.detail}" for problem in verified.problems],
        seconds=seconds,
    )
