"""Delivers operations to a real note service without broker and worker processes: claim, send, settle."""

import asyncio
from collections.abc import Mapping
from uuid import UUID

from pydantic import SecretStr

from oncebox_destinations.note_service import NoteService
from oncebox_destinations.settings import NoteServiceSettings
from oncebox_models.outcomes import Answer
from oncebox_models.states import CallKind
from oncebox_outbox.claiming import Call
from tests.integration.outbox.scenes import Sender


def deliver(sender: Sender, url: str, token: str, *ids: UUID) -> None:
    """One call of each kind that is due for these operations, and what follows from the answers."""
    for call in sender.claim(*ids).calls:
        sender.settle(call, asyncio.run(_ask(url, token, call)))


async def _ask(url: str, token: str, call: Call) -> Mapping[UUID, Answer]:
    service = NoteService(NoteServiceSettings(url, SecretStr(token)))
    outgoing = [operation.outgoing for operation in call.operations]
    try:
        match call.kind:
            case CallKind.SEAL:
                return await service.seal(call.call_id, outgoing)
            case CallKind.STATUS:
                return await service.status(call.call_id, outgoing)
            case _:
                return await service.send(call.call_id, outgoing)
    finally:
        await service.aclose()
