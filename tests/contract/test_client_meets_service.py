"""Our client against the real note service: the two share no code, so what they agree on is the wire."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar
from uuid import UUID, uuid4

import pytest
from pydantic import SecretStr

from oncebox_destinations.note_service import NoteService
from oncebox_destinations.reads import ReadRefused
from oncebox_destinations.settings import NoteServiceSettings
from oncebox_models.calls import Outgoing
from oncebox_models.canonical import args_hash, canonical_arguments
from oncebox_models.outcomes import Answer, Outcome
from tests.notes.running import RunningService, running

Value = TypeVar("Value")


@pytest.fixture
def service(notes_database: str, tmp_path: Path) -> Generator[RunningService, None, None]:
    """A note service where demo/researcher and demo/writer may write to drafts."""
    with running(notes_database, tmp_path, lock_timeout_seconds=0.5, body_max_bytes=600_000) as started:
        started.grant("drafts", "researcher")
        started.grant("drafts", "writer")
        yield started


def operation(key: str, *, principal: str = "researcher", **changes: str) -> Outgoing:
    arguments = canonical_arguments(
        {"folder": "drafts", "title": "Finding 7", "text": "…", "format": "markdown"} | changes
    )
    return Outgoing(
        id=uuid4(),
        operation_id=key,
        tenant="demo",
        principal=principal,
        kind="note.create",
        arguments=arguments,
        args_hash=args_hash("note.create", arguments),
        deadline=datetime.now(UTC) + timedelta(hours=1),
    )


def use(
    service: RunningService,
    work: Callable[[NoteService], Awaitable[Value]],
    *,
    token: str | None = None,
) -> Value:
    async def main() -> Value:
        secret = SecretStr(token or service.token("worker", tenants=["demo"]))
        client = NoteService(NoteServiceSettings(service.url, secret), tries=1)
        try:
            return await work(client)
        finally:
            await client.aclose()

    return asyncio.run(main())


def outcomes(answers: Mapping[UUID, Answer], operations: Sequence[Outgoing]) -> list[tuple[Outcome, str]]:
    return [(answers[of.id].outcome, answers[of.id].reason) for of in operations]


def test_create_replay_status_and_seal_give_one_receipt(service: RunningService) -> None:
    ours = operation("note-7", text='é \U0001f419 \u2028 "quoted" \\')

    async def work(client: NoteService) -> list[Answer]:
        calls = [client.send, client.send, client.status, client.seal]
        return [(await call(uuid4(), [ours]))[ours.id] for call in calls]

    answers = use(service, work)
    assert [answer.reason for answer in answers] == ["created", "replayed", "completed", "completed"]
    assert len({answer.receipt.text for answer in answers if answer.receipt}) == 1
    assert service.notes() == 1


def test_every_kind_of_answer_to_a_batch(service: RunningService) -> None:
    taken, sealed, held = operation("taken"), operation("sealed"), operation("held")
    batch = [
        operation("new"),
        taken,
        operation("taken-by-writer", principal="writer"),
        operation("taken", text="Changed."),
        sealed,
        held,
        operation("denied", folder="archive"),
        replace(operation("late"), deadline=datetime.now(UTC) - timedelta(seconds=1)),
        replace(operation("foreign"), tenant="other"),
        replace(operation("odd"), kind="note.delete"),
        operation("large", text="x" * 262_145),
    ]

    async def work(client: NoteService) -> Mapping[UUID, Answer]:
        await client.send(uuid4(), [taken])
        await client.seal(uuid4(), [sealed])
        with service.held_key("held"):
            return await client.send(uuid4(), batch)

    answers = use(service, work)
    assert outcomes(answers, batch) == [
        (Outcome.RECEIPT, "created"),
        (Outcome.RECEIPT, "replayed"),
        (Outcome.RECEIPT, "created"),
        (Outcome.CONFLICT, "argument_conflict"),
        (Outcome.SEALED, "operation_sealed"),
        (Outcome.IN_PROGRESS, "operation_in_progress"),
        (Outcome.REFUSED, "folder_not_writable"),
        (Outcome.GONE, "operation_expired"),
        (Outcome.UNAUTHENTICATED, "unauthenticated"),
        (Outcome.REFUSED, "invalid_argument"),
        (Outcome.REFUSED, "too_large"),
    ]
    refusal = answers[batch[6].id].problem
    assert refusal is not None
    assert refusal["permitted_folders"] == ["drafts"]


def test_every_state_of_a_key(service: RunningService) -> None:
    done, sealed, held, missing = (operation(key) for key in ("done", "sealed", "held", "missing"))
    asked = [missing, held, sealed, done]

    async def work(client: NoteService) -> list[Mapping[UUID, Answer]]:
        await client.send(uuid4(), [done])
        await client.seal(uuid4(), [sealed])
        with service.held_key("held"):
            return [await client.status(uuid4(), asked), await client.seal(uuid4(), asked)]

    status, seal = use(service, work)
    assert [outcome for outcome, _ in outcomes(status, asked)] == [
        Outcome.NOT_FOUND,
        Outcome.IN_PROGRESS,
        Outcome.SEALED,
        Outcome.RECEIPT,
    ]
    assert [outcome for outcome, _ in outcomes(seal, asked)] == [
        Outcome.SEALED,
        Outcome.IN_PROGRESS,
        Outcome.SEALED,
        Outcome.RECEIPT,
    ]


def test_one_key_of_two_principals_makes_two_notes(service: RunningService) -> None:
    both = [operation("note-7"), operation("note-7", principal="writer", text="other")]
    answers = use(service, lambda client: client.send(uuid4(), both))
    assert outcomes(answers, both) == [(Outcome.RECEIPT, "created")] * 2
    assert service.notes() == 2


def test_a_body_over_the_limit_refuses_nobody_until_it_is_sent_alone(service: RunningService) -> None:
    three = [operation(f"note-{number}", text="x" * 250_000) for number in range(3)]

    async def work(client: NoteService) -> list[Mapping[UUID, Answer]]:
        blind = await client.send(uuid4(), three)
        await client.capabilities()
        return [blind, await client.send(uuid4(), three)]

    blind, informed = use(service, work)
    assert outcomes(blind, three) == [(Outcome.NOT_EXECUTED, "batch_too_large")] * 3
    assert outcomes(informed, three) == [(Outcome.RECEIPT, "created")] * 3


def test_an_unknown_token_is_unauthenticated_for_every_call(service: RunningService) -> None:
    ours = operation("note-7")
    token = f"oncebox_{'0' * 16}_{'A' * 43}"

    async def work(client: NoteService) -> list[Answer]:
        return [(await call(uuid4(), [ours]))[ours.id] for call in (client.send, client.status, client.seal)]

    assert {answer.outcome for answer in use(service, work, token=token)} == {Outcome.UNAUTHENTICATED}


def test_a_note_and_the_folders_are_read_for_a_principal(service: RunningService) -> None:
    ours = operation("note-7")

    async def work(client: NoteService) -> None:
        answer = (await client.send(uuid4(), [ours]))[ours.id]
        assert answer.receipt is not None
        note_id = str(answer.receipt.note["id"])
        note = await client.read_note(note_id, on_behalf_of="demo/researcher")
        assert note is not None
        assert (note.operation_id, note.args_hash, note.folder) == ("note-7", ours.args_hash, "drafts")
        assert {name: getattr(note, name) for name in answer.receipt.note} == answer.receipt.note
        assert await client.read_note(note_id, on_behalf_of="demo/nobody") is None
        assert await client.list_folders(on_behalf_of="demo/researcher") == ["drafts"]
        assert await client.list_folders(on_behalf_of="demo/nobody") == []
        with pytest.raises(ReadRefused, match="401 unauthenticated"):
            await client.list_folders(on_behalf_of="other/researcher")

    use(service, work)
