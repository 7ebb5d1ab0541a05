"""Answers on the wire: fixed members in a fixed order, so that a replay is the same bytes."""

import json
from typing import Final

from starlette.responses import Response

from oncebox_notes.operations import Completed, KeyState, NoteRef, Outcome
from oncebox_notes.problems import Problem
from oncebox_notes.reading import Note
from oncebox_notes.syntax import format_moment

_encoder: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_NO_STORE: Final = {"Cache-Control": "no-store"}


def location(note: NoteRef) -> str:
    return f"/v1/notes/{note.id}"


def note_ref(note: NoteRef) -> dict[str, object]:
    """The note object of receipts, states and look-ups."""
    return {
        "id": str(note.id),
        "folder": note.folder,
        "version": note.version,
        "etag": note.etag,
        "location": location(note),
        "created_at": format_moment(note.created_at),
    }


def receipt(done: Completed) -> dict[str, object]:
    return {"operation_id": done.key.value, "args_hash": done.args_hash, "note": note_ref(done.note)}


def note_body(note: Note) -> dict[str, object]:
    return note_ref(note.ref) | {
        "title": note.title,
        "text": note.text,
        "format": note.format,
        "args_hash": note.args_hash,
        "principal": note.principal,
        "operation_id": note.operation_id,
    }


def key_state(state: KeyState) -> dict[str, object]:
    record = state.record
    return {
        "operation_id": state.key.value,
        "state": state.state,
        "as_of": format_moment(state.as_of),
        "args_hash": record.args_hash if record else None,
        "note": note_ref(record.note) if record and record.note else None,
    }


def batch_item(operation_id: str | None, outcome: Outcome) -> dict[str, object]:
    """One item of a batch answer; `operation_id` as it was sent, or null when it was no string."""
    if isinstance(outcome, Problem):
        return {"operation_id": operation_id, "status": outcome.status, "problem": outcome.body()}
    return {
        "operation_id": operation_id,
        "status": outcome.status,
        "replayed": outcome.replayed,
        "receipt": receipt(outcome),
    }


def asked_item(operation_id: str | None, answer: KeyState | Problem) -> dict[str, object]:
    """One item of a status or seal answer."""
    if isinstance(answer, Problem):
        return {"operation_id": operation_id, "status": answer.status, "problem": answer.body()}
    return key_state(answer)


def document(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(
        _encoder.encode(body).encode("utf-8"),
        status,
        headers=_NO_STORE | (headers or {}),
        media_type="application/json",
    )


def completed(done: Completed) -> Response:
    headers = {
        "Operation-State": "completed",
        "Location": location(done.note),
        "ETag": f'"{done.note.etag}"',
    }
    if done.replayed:
        headers["Idempotent-Replayed"] = "true"
    return document(receipt(done), done.status, headers)


def problem(found: Problem) -> Response:
    headers = dict(_NO_STORE) | found.headers
    headers["Operation-State"] = found.operation_state
    if found.retry_after is not None:
        headers["Retry-After"] = str(found.retry_after)
    if found.code == "unauthenticated":
        headers["WWW-Authenticate"] = 'Bearer realm="notes"'
    content = _encoder.encode(found.body()).encode("utf-8", "backslashreplace")
    return Response(content, found.status, headers=headers, media_type="application/problem+json")
