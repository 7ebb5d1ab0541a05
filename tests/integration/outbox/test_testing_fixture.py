"""The fixture `oncebox` for the tests of programs that use the outbox, as pytest finds it by itself."""

import pytest
from sqlalchemy.orm import Session

from oncebox_models.states import State
from oncebox_outbox.testing import OutboxTesting
from tests.integration.outbox.scenes import OUTBOX, Sender, write


def test_it_sees_what_is_enqueued_in_the_open_transaction(oncebox: OutboxTesting, sender: Sender) -> None:
    with Session(sender.agent) as session:
        oncebox.assert_not_enqueued(session, "note-7")
        OUTBOX.enqueue(session, write())
        assert (
            oncebox.assert_enqueued(session, "note-7", title="Finding 7", folder="drafts").state
            is State.PENDING
        )
        with pytest.raises(AssertionError, match=r"note-7.*other arguments: {'title': 'Finding 7'}"):
            oncebox.assert_enqueued(session, "note-7", title="Finding 8")
        with pytest.raises(AssertionError, match="is in the outbox; it is pending"):
            oncebox.assert_not_enqueued(session, "note-7")
        with pytest.raises(AssertionError, match="0 operations are named 'note-8'"):
            oncebox.assert_enqueued(session, "note-8")


@pytest.mark.parametrize("state", [State.SAVED, State.REFUSED, State.NOT_SAVED, State.NEEDS_REVIEW])
def test_it_writes_the_end_that_a_worker_would_write(
    oncebox: OutboxTesting, sender: Sender, state: State
) -> None:
    with Session(sender.agent) as session, session.begin():
        OUTBOX.enqueue(session, write())
        settled = oncebox.settle(session, "note-7", state)
        assert (settled.state, settled.final) == (state, True)
        assert (settled.receipt is not None) == (state is State.SAVED)
        assert OUTBOX.status(session, "note-7").say
        assert OUTBOX.enqueue(session, write()).state is state
        with pytest.raises(AssertionError, match=f"is settled already; it is {state}"):
            oncebox.settle(session, "note-7", state)
    assert sender.scalar("select count(*) from oncebox.outbox_entry") == 0
