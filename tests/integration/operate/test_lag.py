"""`oncebox lag`: depth and age, exact with no worker and no broker alive."""

import json

from oncebox_models.outcomes import Outcome
from tests.integration.operate.conftest import ONCEBOX, Oncebox
from tests.integration.outbox.scenes import Sender
from tests.support.processes import Processes


def test_it_counts_what_is_open_by_state_with_its_age(oncebox: Oncebox, sender: Sender) -> None:
    """F6: what is in back-off is open, and its age counts from the enqueue."""
    sender.enqueue_one("note-1")
    id = sender.enqueue_one("note-2")
    sender.answer(sender.claim_one(id), Outcome.UNKNOWN, "timeout")
    sender.change(
        "update oncebox.outbox_entry set enqueued_at = now() - interval '1 h' where id = any(:ids)", [id]
    )
    lag = oncebox("lag", "--json").json
    (notes,) = lag["destinations"]
    assert (lag["entries"], lag["unknown"], notes["destination"], notes["entries"]) == (2, 1, "notes", 2)
    assert {state: depth["entries"] for state, depth in notes["states"].items()} == {
        "pending": 1,
        "unknown": 1,
    }
    assert 3600 <= lag["oldest_age_s"] < 3700
    assert "1 h 0 min" in oncebox("lag").out


def test_max_age_exits_with_8_only_when_something_is_older(oncebox: Oncebox, sender: Sender) -> None:
    assert oncebox("lag", "--max-age", "0").code == 0
    id = sender.enqueue_one()
    sender.change(
        "update oncebox.outbox_entry set enqueued_at = now() - interval '2 min' where id = any(:ids)", [id]
    )
    assert oncebox("lag", "--max-age", "1h").code == 0
    old = oncebox("lag", "--max-age", "60s", "--json")
    assert (old.code, old.json["ok"], old.json["max_age_s"]) == (8, False, 60)
    assert "oncebox list --state pending" in old.err


def test_with_nothing_open_it_says_so_with_zeros(oncebox: Oncebox, sender: Sender) -> None:
    lag = oncebox("lag", "--json").json
    assert (lag["entries"], lag["oldest_age_s"], lag["scale_target"]) == (0, 0, 0)
    assert lag["destinations"] == [{"destination": "notes", "entries": 0, "oldest_age_s": 0, "states": {}}]
    assert oncebox("lag").out == "Nothing is open: every operation is settled.\n"


def test_watch_prints_a_line_a_look_and_ends_when_something_is_too_old(
    processes: Processes, oncebox: Oncebox, sender: Sender
) -> None:
    watching = processes.start("lag", [ONCEBOX, "lag", "--watch", "--json", "--max-age", "1h"])
    watching.wait_for_log(r'^\{"entries":0,', count=2)
    id = sender.enqueue_one()
    sender.change(
        "update oncebox.outbox_entry set enqueued_at = now() - interval '2 h' where id = any(:ids)", [id]
    )
    assert watching.wait(10) == 8
    looks = [json.loads(line) for line in watching.log_text().splitlines() if line.startswith("{")]
    assert [look["ok"] for look in looks] == [True] * (len(looks) - 1) + [False]
