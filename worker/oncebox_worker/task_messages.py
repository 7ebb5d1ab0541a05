"""A chunk as a Celery task message, and back: Celery builds it, so that an upgrade of its protocol cannot drift."""

import json
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from celery import Celery

from oncebox_worker.messages import DELIVER_TASK, Chunk, from_task_body

# Builds messages; never connects.
_builder: Final = Celery("oncebox", set_as_current=False)


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """Headers, properties and body of one AMQP message. `id` is the task's and the correlation id."""

    id: str
    headers: dict[str, object]
    properties: dict[str, object]
    body: str


def task_message(chunk: Chunk) -> TaskMessage:
    """The message that makes a worker deliver `chunk`."""
    task_id = uuid4().hex
    built = _builder.amqp.as_task_v2(
        task_id, DELIVER_TASK, (chunk.as_message(),), {}, argsrepr="-", kwargsrepr="-"
    )
    return TaskMessage(task_id, built.headers, built.properties, json.dumps(built.body))


def chunk_of(body: bytes | str) -> Chunk | None:
    """The chunk in a message's body; None when it is not one of ours."""
    try:
        return from_task_body(json.loads(body))
    except ValueError:
        return None
