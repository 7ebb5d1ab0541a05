"""Reading a request: limits first, then headers of which each may occur once, the query, then the body."""

import asyncio
from collections.abc import Sequence
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
    declared_type = single_header(request, "content-type")
    media_type, _, parameter = (declared_type if isinstance(declared_type, str) else "").partition(";")
    charset = parameter.strip().lower().replace('"', "")
    if media_type.strip().lower() != "application/json" or charset not in {"", "charset=utf-8"}:
        raise RefusalError(
            Problem("unsupported_type", "Send the body as application/json in UTF-8, with that Content-Type.")
        )
    if _coded(request, "content-encoding", "identity") or _coded(request, "transfer-encoding", "chunked"):
        raise RefusalError(
            Problem("unsupported_type", "Send the body as it is, neither compressed nor otherwise coded.")
        )


def _coded(request: Request, header: str, known: str) -> bool:
    """Whether the body is not what it looks like: nothing here undoes a coding."""
    return any(value.strip().lower() not in {"", known} for value in request.headers.getlist(header))


def refuse_body(request: Request) -> None:
    """For an endpoint that takes none: what stands in one would be ignored. Raises `RefusalError`."""
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        raise RefusalError(
            problems.from_faults([Fault("invalid_argument", "the body", "is not taken here; send none")])
        )


def query(request: Request, known: Sequence[str]) -> dict[str, str]:
    """The query's values; an unknown or repeated name is refused, as it would be in a body: raises `RefusalError`."""
    faults: list[Fault] = []
    for name in dict.fromkeys(request.query_params.keys()):
        path = f"query {name[:64]}"
        if name not in known:
            listed = f"known is {', '.join(known)}" if known else "there is none here"
            faults.append(Fault("invalid_argument", path, f"is not known; {listed}"))
        elif len(request.query_params.getlist(name)) > 1:
            faults.append(Fault("invalid_argument", path, "occurs more than once"))
    if faults:
        raise RefusalError(problems.from_faults(faults))
    return dict(request.query_params)


def single_header(request: Request, name: str) -> str | Fault | None:
    """The header's value, or none when it is absent; twice is a fault, as nobody can tell which one is meant."""
    values = request.headers.getlist(name)
    if len(values) > 1:
        return Fault("invalid_argument", f"header {name}", f"occurs {len(values)} times; send it once")
    return values[0] if values else None


def call_id(request: Request) -> str | None:
    """The id of this call, as it goes into the log and the audit; one of an unusable form is no call id."""
    value = single_header(request, "call-id")
    if not isinstance(value, str) or not 0 < len(value) <= CALL_ID_LIMIT:
        return None
    return value if value.isascii() and value.isprintable() else None


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
