"""Answers of a receiver that repeats all that it was sent, headers and text, as debug pages do."""

import html
import json

from tests.proof.security.canary import Canary


def echoes(token: str, canary: Canary) -> list[bytes]:
    """Answers to a batch that give back what was sent: a problem, a page, garbage, a receipt that is none."""
    sent = f"Authorization: Bearer {token}\n{canary.title}\n{canary.text}"
    problem = {
        "status": 500,
        "code": "internal",
        "detail": sent,
        "attempt": "unknown",
        "errors": [{"path": "headers", "message": sent}],
    }
    note = {"id": sent, "folder": sent, "version": "x", "etag": sent, "location": sent, "created_at": sent}
    receipt = {"operation_id": sent, "args_hash": sent, "note": note}
    items = [
        {"operation_id": key, "status": 201, "replayed": False, "receipt": receipt}
        for key in ("from-agent", "from-command")
    ]
    page = f"<html><pre>{html.escape(sent)}</pre></html>"
    return [
        _reply(500, json.dumps(problem)),
        _reply(502, page),
        _reply(200, json.dumps({"items": items})),
        _reply(200, f"{sent}"),
        f"HTTP/1.1 200 OK\r\nX-Echo: {token} {canary.title}\r\nContent-Length: x\r\n\r\n".encode(),
    ]


def _reply(status: int, body: str) -> bytes:
    content = body.encode()
    return (
        f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode()
        + content
    )
