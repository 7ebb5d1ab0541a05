"""Destinations: what their receivers last said, and that one receiver belongs to one of them."""

from dataclasses import replace

import pytest

from oncebox_outbox import registry
from oncebox_outbox.registry import OtherReceiver
from tests.integration.outbox.scenes import CAPABILITIES, Sender


def test_the_capabilities_last_seen_come_back_as_they_were(sender: Sender) -> None:
    seen = registry.last_seen(sender.worker, "notes")
    assert seen is not None
    assert seen.capabilities == CAPABILITIES
    assert seen.at == sender.scalar("select capabilities_seen_at from oncebox.destination")


def test_a_receiver_that_was_never_seen_has_none(sender: Sender) -> None:
    registry.register(sender.worker, "archive", "http://127.0.0.1:1", "B")
    assert registry.last_seen(sender.worker, "archive") is None
    assert registry.last_seen(sender.worker, "nowhere") is None


def test_another_receiver_behind_the_same_name_is_refused(sender: Sender) -> None:
    """Its keys are not ours: a resend there would be a second note."""
    other = replace(CAPABILITIES, receiver="receiver-2")
    with pytest.raises(OtherReceiver, match="'notes' belongs to receiver receiver-1, but receiver-2 answers"):
        registry.see(sender.worker, "notes", other)
    seen = registry.last_seen(sender.worker, "notes")
    assert seen is not None
    assert seen.capabilities.receiver == "receiver-1"


def test_one_receiver_under_two_names_is_refused(sender: Sender) -> None:
    """Two names for one party would be two identities for one note."""
    registry.register(sender.worker, "archive", "http://127.0.0.1:1", "A")
    with pytest.raises(
        OtherReceiver,
        match="receiver-1 answers at the address of destination 'archive', but belongs to 'notes'",
    ):
        registry.see(sender.worker, "archive", CAPABILITIES)


def test_the_capabilities_of_an_unregistered_destination_are_refused(sender: Sender) -> None:
    other = replace(CAPABILITIES, receiver="receiver-2")
    with pytest.raises(OtherReceiver, match="'nowhere' is not registered"):
        registry.see(sender.worker, "nowhere", other)


def test_registering_again_sets_address_and_class_and_keeps_the_receiver(sender: Sender) -> None:
    registry.register(sender.worker, "notes", "http://127.0.0.1:2", "B")
    (row,) = sender.rows(
        "select base_url, class, receiver, capabilities is not null as seen from oncebox.destination"
    )
    assert tuple(row) == ("http://127.0.0.1:2", "B", "receiver-1", True)
