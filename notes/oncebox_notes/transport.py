"""Reading a request: limits first, then headers of which each may occur once, then the body."""

import asyncio
from typing import Final

from starlette.requests import Request

from oncebox_notes import problems, strict_json
from oncebox_notes.problems import Fault, Problem, RefusalError
from oncebox_notes.strict_json import Json

CALL_ID_LIMIT: Final = 128
"""Longest call id, in characters."""


def check_headers(request: Request, body_max_bytes: int) -> None:
    """What can be refused before a byte of the body is read; raises `RefusalError`."""
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and len(declared) < 20 and int(declared) > body_max_bytes:
        raise RefusalError(_too_large(body_max_bytes))
    media_type, _, parameter = request.headers.get("content-type", "").partition(";")
    charset = parameter.strip().lower().replace('"', "")
    if media_type.strip().lower() != "application/json" or charset not in {"", "charset=utf-8"}:
        raise RefusalError(
            Problem("unsupported_type", "Send the body as application/json in UTF-8, with that Content-Type.")
        )


def single_header(request: Request, name: str) -> str | Fault | None:
    """The header's value, or none when it is absent; twice is a fault, as nobody can tell which one is meant."""
    values = request.headers.getlist(name)
    if len(values) > 1:
        return Fault("invalid_argument", f"header {name}", f"occurs {len(values)} times; send it once")
    return values[0] if values else None


def call_id(request: Request) -> str | None:
    """The id of this call, as it goes into the log and the audit; one of an unusable form is no call id."""
    value = request.headers.get("call-id")
    return (
        value if value and len(value) <= CALL_ID_LIMIT and value.isascii() and value.isprintable() else None
    )


async def read_json(request: Request, body_max_bytes: int, seconds: float) -> Json:
    """The body's value; raises `RefusalError`, also when the body does not arrive in time."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > body_max_bytes:
                    raise RefusalError(_too_large(body_max_bytes))
    except TimeoutError:
        raise RefusalError(problems.busy(f"the body did not arrive within {seconds:g} seconds")) from None
    try:
        return strict_json.parse(bytes(body))
    except strict_json.MalformedJsonError as error:
        fault = Fault("invalid_argument", "the body", str(error).removeprefix("the body "))
        raise RefusalError(problems.from_faults([fault])) from None


def _too_large(limit: int) -> Problem:
    fault = Fault("too_large", "the body", f"is larger than {limit} bytes")
    return Problem(
        "too_large", f"Send at most {limit} bytes: use smaller batches or a shorter note.", errors=[fault]
    )
