"""Many processes that enqueue the same identities, each in its own order; each prints what it was told.

python -m tests.integration.outbox.racer URL PROCESSES

They are forked from one that has imported everything and connected to nothing: sixteen imports take longer than the
race.
"""

import json
import os
import random
import sys
import traceback
from collections import Counter
from collections.abc import Sequence

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from oncebox_outbox import Enqueued, RetryTransaction, Write
from tests.integration.outbox.scenes import LEVELS, OUTBOX, write

IDENTITIES = 200
START_LOCK = 4_242
"""Advisory lock that holds the racers back until all have come."""
BATCH = 20


def _transaction(engine: sa.Engine, writes: Sequence[Write], told: Counter[str]) -> None:
    """Run until it commits, as the docs tell a caller to."""
    while True:
        try:
            with Session(engine) as session, session.begin():
                outcomes = OUTBOX.enqueue_many(session, writes)
        except RetryTransaction:
            told["retried"] += 1
            continue
        except OperationalError as error:
            # The caller's own COMMIT, which nobody but the caller can catch.
            if not isinstance(error.orig, psycopg.errors.SerializationFailure):
                raise
            told["retried"] += 1
            continue
        told.update(
            "created" if outcome.created else "existing"
            for outcome in outcomes
            if isinstance(outcome, Enqueued)
        )
        return


def _race(url: str, seed: int) -> None:
    engine = sa.create_engine(
        sa.make_url(url).set(drivername="postgresql+psycopg"),
        isolation_level=LEVELS[seed % len(LEVELS)],
        connect_args={"application_name": "racer"},
    )
    writes = [write(f"note-{n}") for n in range(IDENTITIES)]
    random.Random(seed).shuffle(writes)
    size = BATCH if seed % 2 else 1
    told: Counter[str] = Counter()
    with engine.connect() as connection:
        connection.execute(sa.text("select pg_advisory_xact_lock_shared(:lock)"), {"lock": START_LOCK})
    for start in range(0, IDENTITIES, size):
        _transaction(engine, writes[start : start + size], told)
    # One write of less than a page: lines of different processes do not mix.
    os.write(1, (json.dumps(told) + "\n").encode())


def main(url: str, processes: int) -> int:
    children: list[int] = []
    for seed in range(processes):
        child = os.fork()
        if child == 0:
            try:
                _race(url, seed)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        children.append(child)
    return max(os.waitpid(child, 0)[1] for child in children)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])) != 0)
