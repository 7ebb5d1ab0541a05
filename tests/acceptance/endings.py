"""How each of the boundary tests must end: one note, one receipt, whoever is asked and however often."""

import pytest

from oncebox_outbox import ArgumentConflict
from tests.acceptance.receiver import canonical
from tests.acceptance.town import Town


def assert_one_note_for_good(town: Town, operation_id: str) -> None:
    """Saved with one note; the same bytes from all who hold the receipt, also after a restart of everything;
    changed arguments are refused on both sides."""
    settled = town.wait(operation_id)
    assert settled.state == "saved", settled.say
    assert settled.receipt is not None
    assert town.notes.notes_of(operation_id) == [settled.receipt.note["id"]]
    assert_changed_arguments_refused(town, operation_id)

    before = receipts(town, operation_id)
    town.restart_everything()
    after = receipts(town, operation_id)

    assert len({before["status"], *before.values(), *after.values()}) == 1, (before, after)
    assert town.notes.notes_of(operation_id) == [settled.receipt.note["id"]]
    assert town.sender.violations() == []


def receipts(town: Town, operation_id: str) -> dict[str, str]:
    """The receipt's canonical bytes from an enqueue of the same again, from the status, and from the receiver."""
    held = town.status(operation_id).receipt
    again = town.save(operation_id)
    assert not again.created
    replayed = town.receiver.create(operation_id, frozen_arguments(town, operation_id))
    assert (replayed.status_code, replayed.headers["idempotent-replayed"]) == (201, "true")
    asked = town.receiver.state(operation_id)
    assert held is not None
    assert again.receipt is not None
    assert asked is not None
    return {
        "status": held.text,
        "enqueue": again.receipt.text,
        "receiver": canonical(replayed.json()),
        "receiver's status": canonical({name: asked[name] for name in ("operation_id", "args_hash", "note")}),
    }


def frozen_arguments(town: Town, operation_id: str) -> str:
    """The bytes that were frozen at the enqueue."""
    return str(
        town.sender.value("SELECT arguments FROM oncebox.operation WHERE operation_id = %s", operation_id)
    )


def assert_changed_arguments_refused(town: Town, operation_id: str) -> None:
    """An edit under the same name: the sender refuses it before any network, the receiver with 422."""
    with pytest.raises(ArgumentConflict):
        town.save(operation_id, text="Another text.")
    changed = frozen_arguments(town, operation_id).replace("faster", "slower")
    refused = town.receiver.create(operation_id, changed)
    assert (refused.status_code, refused.json()["code"]) == (422, "argument_conflict")
