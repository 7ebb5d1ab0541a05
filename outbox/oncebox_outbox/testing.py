"""For the tests of programs that use the outbox: a pytest fixture on the caller's own session.

    def test_agent_saves(oncebox, session):
        run_my_agent(session)
        oncebox.assert_enqueued(session, "note-7", title="Finding 7")
        oncebox.settle(session, "note-7", State.SAVED)
        assert my_agent_says(session) == "saved"

It needs PostgreSQL with the schema, and nothing else: `settle` writes the end that a worker would write.
"""

import json
from uuid import uuid4

import pytest
from sqlalchemy import text

from oncebox_models.outcomes import Receipt
from oncebox_models.states import FINAL_STATES, State
from oncebox_outbox import status
from oncebox_outbox.edge import on_connection
from oncebox_outbox.status import OperationStatus, Transaction


class OutboxTesting:
    """What the fixture `oncebox` gives."""

    def assert_enqueued(self, session: Transaction, operation_id: str, **arguments: str) -> OperationStatus:
        """Assert that an operation is in the outbox and that its arguments include those given."""
        operation = self._only(session, operation_id)
        row = on_connection(session).execute(
            text("select arguments from oncebox.operation where id = :id"), {"id": operation.id}
        )
        frozen = json.loads(row.scalar_one())
        wrong = {name: frozen.get(name) for name, value in arguments.items() if frozen.get(name) != value}
        assert not wrong, f"operation {operation_id!r} has other arguments: {wrong}"
        return operation

    def assert_not_enqueued(self, session: Transaction, operation_id: str) -> None:
        """Assert that no operation of that name is in the outbox."""
        found = status.find(session, operation_id)
        assert not found, f"operation {operation_id!r} is in the outbox; it is {found[0].state}"

    def settle(
        self, session: Transaction, operation_id: str, state: State, *, reason: str = "test"
    ) -> OperationStatus:
        """End a live operation as `saved`, `refused`, `not_saved` or `needs_review`, as a worker would."""
        if state not in FINAL_STATES:
            raise ValueError(f"{state} is not an end; settle as {', '.join(sorted(FINAL_STATES))}")
        operation = self._only(session, operation_id)
        receipt = None
        if state is State.SAVED:
            note = {
                "id": str(uuid4()),
                "folder": "test",
                "version": 1,
                "etag": '"1"',
                "location": "/v1/notes/test",
            }
            receipt = Receipt(operation_id, operation.args_hash, note).text
        rows = on_connection(session).execute(
            text(
                "with settled as (update oncebox.operation set final = :final, reason = :reason, receipt = :receipt,"
                " settled_at = now() where id = :id and final is null returning id)"
                " delete from oncebox.outbox_entry e using settled s where e.id = s.id"
            ),
            {
                "id": operation.id,
                "final": str(state),
                "reason": None if state is State.SAVED else reason,
                "receipt": receipt,
            },
        )
        assert rows.rowcount == 1, f"operation {operation_id!r} is settled already; it is {operation.state}"
        return self._only(session, operation_id)

    def _only(self, session: Transaction, operation_id: str) -> OperationStatus:
        found = status.find(session, operation_id)
        assert len(found) == 1, f"{len(found)} operations are named {operation_id!r}; expected one"
        return found[0]


@pytest.fixture
def oncebox() -> OutboxTesting:
    """Assertions on the outbox, and ends without a worker."""
    return OutboxTesting()
