"""Endpoints about the receiver itself: its identity and limits, its folders, its health."""

from typing import Final

import psycopg
from fastapi import APIRouter, Request, Response

from oncebox_notes import (
    VERSION,
    answers,
    database,
    migrating,
    openapi,
    problems,
    reading,
    service,
    statements,
)
from oncebox_notes.metrics import CONTENT_TYPE
from oncebox_notes.note_endpoints import acting
from oncebox_notes.problems import RefusalError
from oncebox_notes.settings import FOLDER_DEPTH_LIMIT, TITLE_LIMIT
from oncebox_notes.syntax import format_moment

router: Final = APIRouter(tags=["receiver"])


@router.get("/v1/capabilities", **openapi.CAPABILITIES)
async def capabilities(request: Request) -> Response:
    """Who this receiver is, what it promises, and within which limits."""
    served = service.of(request)
    await served.authenticate(request)
    rows = await database.fetch(served.pool, statements.RECEIVER, {})
    receiver_id, now = rows[0]
    settings = served.settings
    return answers.document(
        {
            "receiver": str(receiver_id),
            "class": "A",
            "batch": {"max_items": settings.batch_max_items, "max_bytes": settings.body_max_bytes},
            "admission_window_s": settings.admission_window_seconds,
            "request_limit_s": settings.request_limit_seconds,
            "tombstone_retention_s": settings.tombstone_retention_seconds,
            "limits": {
                "title": TITLE_LIMIT,
                "text_bytes": settings.note_max_bytes,
                "depth": FOLDER_DEPTH_LIMIT,
            },
            "server_time": format_moment(now),
            "version": VERSION,
        }
    )


@router.get("/v1/folders", **openapi.FOLDERS)
async def folders(request: Request) -> Response:
    """The folders that the principal may write to now."""
    served = service.of(request)
    context = await served.authenticate(request)
    owner = acting(context)
    service.entry_of(request).principal = str(owner)
    found = await reading.writable_folders(served.pool, owner)
    return answers.document(
        {"folders": [{"path": path, "granted_at": format_moment(granted_at)} for path, granted_at in found]}
    )


@router.get("/healthz", **openapi.HEALTH)
async def healthz() -> Response:
    """The process is alive."""
    return answers.document({"status": "alive"})


@router.get("/readyz", **openapi.READY)
async def readyz(request: Request) -> Response:
    """The database can be reached and has the tables of this version."""
    served = service.of(request)
    try:
        rows = await database.fetch(served.pool, statements.SCHEMA_REVISION, {})
    except psycopg.errors.UndefinedTable:
        rows = []
    if [row[0] for row in rows] != [migrating.HEAD]:
        raise RefusalError(problems.busy("the database has not the tables of this version; migrate it up"))
    return answers.document({"status": "ready"})


@router.get("/metrics", **openapi.METRICS)
async def metrics(request: Request) -> Response:
    """Prometheus' text format."""
    return Response(service.of(request).metrics.render(), media_type=CONTENT_TYPE)
