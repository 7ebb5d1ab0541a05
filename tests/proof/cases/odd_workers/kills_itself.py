"""A worker whose process ends by kill -9 whenever it is about to call the receiver for an operation named poison."""

import os
import signal
from collections.abc import Mapping, Sequence
from uuid import UUID

from celery.signals import task_prerun

from oncebox_destinations.note_service import NoteService
from oncebox_models.calls import Outgoing
from oncebox_models.outcomes import Answer
from oncebox_worker.app import app

__all__ = ["app"]


@task_prerun.connect
def _say(**_: object) -> None:
    os.write(2, b'{"event": "delivered"}\n')


_original = {"send": NoteService.send, "status": NoteService.status, "seal": NoteService.seal}


def _deadly(name: str):
    async def call(self: NoteService, call_id: UUID, operations: Sequence[Outgoing]) -> Mapping[UUID, Answer]:
        if any(operation.operation_id.startswith("poison") for operation in operations):
            os.kill(os.getpid(), signal.SIGKILL)
        return await _original[name](self, call_id, operations)

    return call


for _name in _original:
    setattr(NoteService, _name, _deadly(_name))
