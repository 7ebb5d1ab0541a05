"""Reading many notes from the note service at once, for `verify --deep`."""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from oncebox_destinations.note_service import NoteService
from oncebox_destinations.protocol import StoredNote
from oncebox_destinations.settings import NoteServiceSettings
from oncebox_operate.verification_rules import Entry

_AT_ONCE: Final = 16


class NoteReading:
    """A client of the note service with an event loop of its own. Calling it reads the notes of saved operations.

    Raises ReceiverUnreachable and ReadRefused.
    """

    def __init__(self, runner: asyncio.Runner, service: NoteService) -> None:
        self._runner = runner
        self._service = service

    @classmethod
    @contextmanager
    def connected(cls, settings: NoteServiceSettings) -> Generator["NoteReading"]:
        with asyncio.Runner() as runner:
            service = NoteService(settings)
            try:
                yield cls(runner, service)
            finally:
                runner.run(service.aclose())

    def __call__(self, entries: Sequence[Entry]) -> Mapping[UUID, StoredNote | None]:
        return self._runner.run(self._read_all(entries))

    async def _read_all(self, entries: Sequence[Entry]) -> Mapping[UUID, StoredNote | None]:
        places = asyncio.Semaphore(_AT_ONCE)

        async def read(entry: Entry) -> StoredNote | None:
            async with places:
                return await self._read(entry)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = {entry.id: group.create_task(read(entry)) for entry in entries}
        except ExceptionGroup as failed:
            # All of them ask the same receiver: the first reason says what is wrong.
            raise failed.exceptions[0] from None
        return {id: task.result() for id, task in tasks.items()}

    async def _read(self, entry: Entry) -> StoredNote | None:
        if entry.receipt is None:
            return None
        version = entry.receipt.note.get("version")
        return await self._service.read_note(
            str(entry.receipt.note.get("id")),
            on_behalf_of=f"{entry.key.tenant}/{entry.key.principal}",
            version=version if isinstance(version, int) else None,
        )
