"""A primary that became a standby under a worker's pool, and tables that are not those of this version."""

from collections.abc import Callable

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import InternalError

from oncebox_worker import preflight
from oncebox_worker.delivery import Delivered, Delivery
from tests.integration.worker.parties import Sender
from tests.integration.worker.test_delivery import delivery, proxy, ready, sender
from tests.integration.worker.test_start_checks import refused

__all__ = ["delivery", "proxy", "ready", "sender"]  # fixtures


def test_a_worker_leaves_a_primary_that_became_read_only(ready: Sender, delivery: Delivery) -> None:
    """F51: its connections still work, and lead to the old primary: one failure drops them all, and the next claim is made
    over a new one, by which time the name leads to the new primary."""
    ids = ready.enqueue_named("note-7")
    with delivery.engine.connect() as first, delivery.engine.connect() as second:
        for connection in (first, second):
            connection.execute(sa.text("set default_transaction_read_only = on"))
    with pytest.raises(InternalError, match="read-only transaction"):
        delivery.deliver("notes", ids)
    assert ready.attempts() == 0
    assert delivery.deliver("notes", ids) == Delivered(claimed=1, settled=1, again=0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("drop table oncebox.violation", "lacks violation.at, violation.call_id"),
        ("alter table oncebox.call_outcome drop column problem", "lacks call_outcome.problem;"),
        ("drop schema oncebox cascade", "has no tables"),
    ],
    ids=["table", "column", "schema"],
)
def test_tables_of_another_version_start_nothing(
    sender: Sender, capsys: pytest.CaptureFixture[str], change: str, said: str
) -> None:
    """F57: what is written only when something went wrong is missed only then, and would keep every operation from its end:
    so it is looked for at the start, and what to type is said."""
    sender.change(change)
    checks: list[Callable[[], None]] = [
        lambda: preflight.check_relay(sender.relay_settings()),
        lambda: preflight.check_worker(sender.worker_settings()),
    ]
    for check in checks:
        (fault,) = refused(capsys, check, code=1)
        assert said in fault
        assert fault.endswith("oncebox migrate up")
