"""An agent as a program of its own: at a steady pace it keeps findings and wants notes of them, in one transaction.

    python -m tests.proof.chaos.agent NUMBER SEED COUNT PACE BEGAN EPOCH LEDGER STATEMENTS STOP

PACE: transactions a second from BEGAN on (by the monotonic clock, which all processes of the machine share). EPOCH: unix
time at zero of that clock; this process's own wall clock may be wrong. STOP: a file; once it is there, wishes from the
number in it on are none of ours. A transaction that failed, or whose commit was
not answered, is run again as it was. After a kill, the next start goes on where this one was.
"""

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from oncebox_outbox import Enqueued, Intent, Outbox, Write
from oncebox_outbox.errors import RetryTransaction
from tests.proof.chaos.ledgers import AgentLedger
from tests.proof.chaos.wishes import DESTINATION, FOLDER, PRINCIPAL, TENANT, Wish, wish
from tests.proof.history.recorder import Recorder
from tests.proof.history.statements import EnqueueSaid, Key, NoAnswer, RollbackSaid

OUTBOX: Final = Outbox(tenant=TENANT, principal=PRINCIPAL, destination=DESTINATION)
_ISOLATION: Final = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
_AGAIN_S: Final = 0.2
# It exists already where the commit of an earlier try took place without our hearing of it.
_KEEP: Final = text(
    "insert into chaos_finding (operation_id, claim) values (:operation_id, :claim) on conflict do nothing"
)


class ChangedMind(Exception):
    """The agent rolls its transaction back."""


@dataclass(frozen=True, slots=True)
class Agent:
    """`run` works through the first `count` wishes of an agent."""

    number: int
    seed: int
    count: int
    pace: float
    began: float
    epoch: float
    engine: Engine
    ledger: AgentLedger
    recorder: Recorder
    stop: Path

    def run(self) -> None:
        for number in self.ledger.still_to_do(self.count):
            time.sleep(max(self.began + number / self.pace - time.monotonic(), 0.0))
            if self.stop.exists() and number >= float(self.stop.read_text(encoding="ascii") or number):
                return
            one = wish(self.seed, self.number, number)
            self.ledger.note(number, "begun")
            while not self._fulfil(one):
                time.sleep(_AGAIN_S)

    def _fulfil(self, one: Wish) -> bool:
        """Run the transaction; False: it failed, or nobody knows."""
        asked_at = self._now()
        try:
            held = self._enqueue(one)
        except ChangedMind:
            self.ledger.note(one.number, "rolled back")
            for operation_id in one.operation_ids:
                self._record(asked_at, RollbackSaid(_key(operation_id)))
            return True
        except (DBAPIError, RetryTransaction) as error:
            for operation_id in one.operation_ids:
                self._record(asked_at, NoAnswer("enqueue", type(error).__name__, _key(operation_id)))
            return False
        self.ledger.note(one.number, "committed")
        for operation_id, enqueued in zip(one.operation_ids, held, strict=True):
            receipt = None if enqueued.receipt is None else enqueued.receipt.text
            said = EnqueueSaid(_key(operation_id), enqueued.created, enqueued.state, receipt)
            self._record(asked_at, said)
        return True

    def _enqueue(self, one: Wish) -> list[Enqueued]:
        with Session(self.engine) as session, session.begin():
            session.execute(
                _KEEP,
                [
                    {"operation_id": operation_id, "claim": words[:80]}
                    for operation_id, words in zip(one.operation_ids, one.texts, strict=True)
                ],
            )
            outcomes = OUTBOX.enqueue_many(session, writes(one))
            held = [outcome for outcome in outcomes if isinstance(outcome, Enqueued)]
            if len(held) != len(outcomes):
                raise RuntimeError(f"the outbox does not take what an agent wants: {outcomes}")
            if one.rolled_back:
                raise ChangedMind
        return held

    def _now(self) -> float:
        return time.monotonic() + self.epoch

    def _record(self, asked_at: float, said: EnqueueSaid | RollbackSaid | NoAnswer) -> None:
        self.recorder.record(f"agent-{self.number} api", asked_at, self._now(), said)


def writes(one: Wish) -> list[Write]:
    """The wish as the outbox takes it; the same again whenever it is asked for."""
    return [
        Write(
            Intent(
                run=f"chaos-agent-{one.agent}",
                step=f"keep {one.number}",
                purpose="have it where others can read it",
            ),
            {"folder": FOLDER, "title": one.title, "text": words, "format": "markdown"},
            operation_id=operation_id,
            ordering_key=one.ordering_key,
        )
        for operation_id, words in zip(one.operation_ids, one.texts, strict=True)
    ]


def _key(operation_id: str) -> Key:
    return Key(TENANT, PRINCIPAL, operation_id)


def main(arguments: list[str]) -> None:
    number, seed, count, pace, began, epoch, ledger, statements, stop = arguments
    url = make_url(os.environ["ONCEBOX_DATABASE_URL"]).set(drivername="postgresql+psycopg")
    engine = create_engine(
        url,
        isolation_level=_ISOLATION[int(number) % len(_ISOLATION)],
        pool_size=1,
        pool_pre_ping=True,
        connect_args={"application_name": f"chaos agent {number}", "connect_timeout": 3},
    )
    with AgentLedger(Path(ledger)) as kept, Recorder(Path(statements)) as recorder:
        Agent(
            int(number),
            int(seed),
            int(count),
            float(pace),
            float(began),
            float(epoch),
            engine,
            kept,
            recorder,
            Path(stop),
        ).run()
    print(json.dumps({"event": "done"}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
