"""The application: endpoints, problems for everything that goes wrong, the access log around it all."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, TextIO

import psycopg
import structlog
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route

from oncebox_notes import (
    VERSION,
    answers,
    database,
    note_endpoints,
    openapi,
    operation_endpoints,
    problems,
    receiver_endpoints,
)
from oncebox_notes.access_log import CLIENT_GONE, AccessLog
from oncebox_notes.metrics import Metrics
from oncebox_notes.problems import Problem, RefusalError
from oncebox_notes.service import Service
from oncebox_notes.settings import Settings

_log = structlog.stdlib.get_logger(__name__)

_ROUTERS: Final = (operation_endpoints.router, note_endpoints.router, receiver_endpoints.router)


def create_app(settings: Settings) -> FastAPI:
    """The note service as an ASGI application; it opens its connections when it is started."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        pool = database.open_pool(settings)
        await pool.open()
        served = Service(settings, pool, metrics)
        app.state.service = served
        try:
            yield
        finally:
            await served.drain()
            await pool.close()
            if settings.access_log is not None:
                stream.close()

    metrics = Metrics()
    stream: TextIO = (
        settings.access_log.open("a", encoding="utf-8") if settings.access_log is not None else sys.stderr
    )
    app = FastAPI(
        title="Oncebox notes",
        version=VERSION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    for router in _ROUTERS:
        app.include_router(router)
    openapi.serve(app)
    app.add_exception_handler(RefusalError, _refused)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ClientDisconnect, _client_gone)
    app.add_exception_handler(psycopg.Error, _failed)
    app.add_middleware(AccessLog, stream=stream, metrics=metrics)
    return app


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusalError)
    return answers.problem(error.problem)


async def _http_error(request: Request, error: Exception) -> Response:
    """What the router itself refuses: an unknown path or method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = _allowed(request)
        detail = f"{request.url.path} has the methods {allowed}; see /openapi.json."
        return answers.problem(Problem("method_not_allowed", detail, headers={"Allow": allowed}))
    if error.status_code == 404:
        return answers.problem(Problem("route_not_found", "There is no such endpoint; see /openapi.json."))
    return await _failed(request, error)


def _allowed(request: Request) -> str:
    """The methods of all endpoints with this path; the router names those of one."""
    methods: set[str] = set()
    for router in _ROUTERS:
        for route in router.routes:
            if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
                methods |= route.methods or set()
    return ", ".join(sorted(methods)) or "GET"


async def _client_gone(_: Request, __: Exception) -> Response:
    return Response(status_code=CLIENT_GONE)


async def _failed(request: Request, error: Exception) -> Response:
    _log.error("request_failed", method=request.method, path=request.scope["path"][:64], exc_info=error)
    return answers.problem(problems.internal())
