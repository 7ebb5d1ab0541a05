"""Lists page by page, newest first; and the timeline of one operation, every call with its outcome."""

from uuid import UUID

import pytest

from oncebox_models.outcomes import Outcome
from oncebox_models.states import CallKind, State
from oncebox_outbox import Intent, Outbox, listing, status
from oncebox_outbox.listing import Filter, TimelineCall
from tests.integration.outbox.scenes import Sender, saved, write


def _list(sender: Sender, wanted: Filter, *, limit: int = 100) -> list[str]:
    with sender.agent.connect() as connection:
        return [operation.operation_id for operation in listing.operations(connection, wanted, limit=limit)]


def _timeline(sender: Sender, id: UUID) -> list[TimelineCall]:
    with sender.agent.connect() as connection:
        return listing.timeline(connection, id)


@pytest.fixture
def mixed(sender: Sender) -> Sender:
    """One operation of each kind of state, in this order."""
    names = ("pending", "unknown", "saved", "refused", "not_saved", "access_lost", "retrying")
    ids = {name: sender.enqueue_one(name) for name in names}
    sender.answer(sender.claim_one(ids["unknown"]), Outcome.UNKNOWN)
    sender.settle(call := sender.claim_one(ids["saved"]), saved(call))
    sender.answer(sender.claim_one(ids["refused"]), Outcome.CONFLICT)
    sender.answer(sender.claim_one(ids["not_saved"]), Outcome.SEALED)
    for _ in range(3):
        sender.answer(sender.claim_one(ids["access_lost"]), Outcome.UNAUTHENTICATED)
    sender.answer(sender.claim_one(ids["retrying"]), Outcome.NOT_EXECUTED)
    return sender


def test_without_a_filter_all_are_listed_newest_first(mixed: Sender) -> None:
    assert _list(mixed, Filter()) == [
        "retrying",
        "access_lost",
        "not_saved",
        "refused",
        "saved",
        "unknown",
        "pending",
    ]


@pytest.mark.parametrize(
    ("states", "names"),
    [
        ({State.PENDING}, ["pending"]),
        ({State.UNKNOWN, State.RETRYING}, ["retrying", "unknown"]),
        ({State.SAVED}, ["saved"]),
        ({State.NEEDS_REVIEW}, ["access_lost"]),
        ({State.SAVED, State.PENDING, State.REFUSED}, ["refused", "saved", "pending"]),
        (set(State), ["retrying", "access_lost", "not_saved", "refused", "saved", "unknown", "pending"]),
        ({State.SENDING}, []),
        (set[State](), []),
    ],
)
def test_states_narrow_the_list(mixed: Sender, states: set[State], names: list[str]) -> None:
    assert _list(mixed, Filter(states=states)) == names


@pytest.mark.parametrize("states", [None, set(State)])
def test_pages_follow_each_other_without_gap_or_overlap(mixed: Sender, states: set[State] | None) -> None:
    seen: list[str] = []
    before: UUID | None = None
    with mixed.agent.connect() as connection:
        while page := listing.operations(connection, Filter(states=states, before=before), limit=3):
            assert len(page) <= 3
            seen += [operation.operation_id for operation in page]
            before = page[-1].id
    assert seen == ["retrying", "access_lost", "not_saved", "refused", "saved", "unknown", "pending"]


def test_party_and_run_narrow_the_list(sender: Sender) -> None:
    sender.enqueue(
        write("ours", intent=Intent("run-1", "s", "why")), write("later", intent=Intent("run-2", "s", "why"))
    )
    sender.enqueue(write("theirs", intent=Intent("run-1", "s", "why")), outbox=Outbox("other", "writer"))
    for states in (None, {State.PENDING}):
        assert _list(sender, Filter(states=states, run="run-1")) == ["theirs", "ours"]
        assert _list(sender, Filter(states=states, tenant="other")) == ["theirs"]
        assert _list(sender, Filter(states=states, principal="researcher", run="run-2")) == ["later"]
        assert _list(sender, Filter(states=states, destination="elsewhere")) == []


def test_a_name_or_our_uuid_finds_an_operation_and_the_party_narrows_it(sender: Sender) -> None:
    id = sender.enqueue_one()
    (theirs,) = sender.enqueue(write(), outbox=Outbox("other", "writer"))
    with sender.agent.connect() as connection:
        assert [found.id for found in status.find(connection, "note-7")] == [id, theirs.id]
        assert [found.id for found in status.find(connection, "note-7", tenant="other")] == [theirs.id]
        assert [found.id for found in status.find(connection, str(id))] == [id]
        assert status.find(connection, str(id), tenant="other") == []
        for nobody in ("", " ", "a\x00", "note 7", "x" * 500):
            assert status.find(connection, nobody) == []


def test_the_timeline_has_every_call_in_order(sender: Sender) -> None:
    """The story of issue 2, 7: a send without an answer, a question, the receipt."""
    id = sender.enqueue_one()
    assert _timeline(sender, id) == []
    sender.answer(sender.claim_one(id, worker="w-1"), Outcome.UNKNOWN, "timeout")
    asking = sender.claim_one(id, worker="w-2")
    (first, under_way) = _timeline(sender, id)
    assert (first.kind, first.worker, first.outcome, first.reason) == (
        CallKind.SEND,
        "w-1",
        "unknown",
        "timeout",
    )
    assert first.finished_at is not None
    assert (under_way.kind, under_way.call_id, under_way.outcome, under_way.finished_at) == (CallKind.STATUS, asking.call_id, None, None)  # fmt: skip
    sender.settle(asking, saved(asking))
    assert [(call.kind, call.outcome) for call in _timeline(sender, id)] == [
        (CallKind.SEND, "unknown"), (CallKind.STATUS, "receipt"),
    ]  # fmt: skip


def test_a_receipt_at_the_first_try_is_in_the_timeline(sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.settle(call := sender.claim_one(id), saved(call))
    (only,) = _timeline(sender, id)
    assert (only.kind, only.outcome, only.operations) == (CallKind.SEND, "receipt", 1)


def test_a_refusal_and_its_seal_are_in_the_timeline_with_the_receivers_words(sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.answer(
        sender.claim_one(id), Outcome.REFUSED, "too_large", problem={"detail": "No."}, http_status=413
    )
    sender.answer(sender.claim_one(id), Outcome.SEALED, "sealed", http_status=200)
    first, second = _timeline(sender, id)
    assert (first.outcome, first.reason, first.http_status, first.problem) == (
        "refused",
        "too_large",
        413,
        {"detail": "No."},
    )
    assert (second.kind, second.outcome, second.http_status) == (CallKind.SEAL, "sealed", 200)


def test_a_worker_that_died_leaves_its_call_in_the_timeline(sender: Sender) -> None:
    id = sender.enqueue_one()
    sender.claim_one(id, worker="dead")
    sender.lapse(id)
    sender.settle(call := sender.claim_one(id, worker="alive"), saved(call))
    assert [(call.worker, call.outcome, call.reason) for call in _timeline(sender, id)] == [
        ("dead", "unknown", "lease_lapsed"), ("alive", "receipt", "created"),
    ]  # fmt: skip


def test_a_zombies_late_answer_replaces_the_word_of_its_lapsed_lease(sender: Sender) -> None:
    id = sender.enqueue_one()
    zombie = sender.claim_one(id, worker="zombie")
    sender.lapse(id)
    adopter = sender.claim_one(id, worker="adopter")
    sender.settle(zombie, saved(zombie))
    sender.answer(adopter, Outcome.NOT_FOUND)
    assert [(call.worker, call.outcome) for call in _timeline(sender, id)] == [
        ("zombie", "receipt"),
        ("adopter", "not_found"),
    ]
    assert sender.status().state is State.SAVED
