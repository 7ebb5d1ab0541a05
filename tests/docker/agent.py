"""An agent on this machine that commits wishes to save notes at a steady rate, until it is told that it is enough."""

import threading
from typing import Self

from sqlalchemy import create_engine, make_url
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from oncebox_outbox import Intent, Outbox

OUTBOX = Outbox(tenant="demo", principal="researcher", destination="notes")
WHY = Intent(run="run-42", step="summarise", purpose="keep what was found")


class Agent:
    """``with Agent(url, rate=25) as agent``: it works in a thread; at the end of the block it has stopped."""

    def __init__(self, database_url: str, *, rate: float, prefix: str = "note") -> None:
        url = make_url(database_url).set(drivername="postgresql+psycopg")
        self._engine = create_engine(url, poolclass=NullPool)
        self._pause_s = 1 / rate
        self._prefix = prefix
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._work, name="agent")
        self._failure: BaseException | None = None
        self.committed = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def save_up_to(self, count: int) -> None:
        """Commit one after another until that many are committed in all; not while the thread works."""
        assert not self._thread.is_alive()
        while self.committed < count:
            self._save()

    def _work(self) -> None:
        try:
            while not self._enough.wait(self._pause_s):
                self._save()
        except BaseException as error:
            self._failure = error

    def _save(self) -> None:
        name = f"{self._prefix}-{self.committed + 1}"
        with Session(self._engine) as session, session.begin():
            OUTBOX.save_note(
                session, WHY, operation_id=name, folder="drafts", title="Finding", text=f"The text of {name}."
            )
        self.committed += 1
