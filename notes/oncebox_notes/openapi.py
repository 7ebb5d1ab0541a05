"""The OpenAPI document: what each endpoint takes and every status it answers with."""

from typing import Annotated, Any, Final

from fastapi import FastAPI, Path, Request, Response

from oncebox_notes import answers
from oncebox_notes.arguments import FORMATS, KINDS
from oncebox_notes.problems import KINDS as PROBLEMS
from oncebox_notes.problems import Code
from oncebox_notes.settings import TITLE_LIMIT

Schema = dict[str, Any]


def _object(properties: Schema, optional: tuple[str, ...] = ()) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [name for name in properties if name not in optional],
        "properties": properties,
    }


def _list(items: Schema, most: int | None = None) -> Schema:
    return {"type": "array", "items": items} | ({"minItems": 1, "maxItems": most} if most else {})


def _maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _text(pattern: str, **more: object) -> Schema:
    return {"type": "string", "pattern": pattern} | more


_KEY_PATTERN: Final = "[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"
_NAME_PATTERN: Final = "[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}"
_TAG_PATTERN: Final = "[!#-~]+"
# What `str.strip` takes away: a title of nothing else is blank.
_BLANK: Final = r"\t-\r\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

_STRING: Final[Schema] = {"type": "string"}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_KEY: Final = _text(f"^{_KEY_PATTERN}$")
_HASH: Final = _text("^[0-9a-f]{64}$")
_NOTE_ID: Final = _text("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", format="uuid")
_PRINCIPAL: Final = _text(f"^{_NAME_PATTERN}/{_NAME_PATTERN}$")
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
# The rules of a folder are a page of docs/wire and no pattern.
_FOLDER: Final[Schema] = {"type": "string", "format": "folder", "minLength": 1}
_CONTENT: Final[Schema] = {
    "title": _text(rf"^[^\u0000]*[^\u0000{_BLANK}][^\u0000]*$", minLength=1, maxLength=TITLE_LIMIT),
    "text": _text(r"^[^\u0000]*$"),
    "format": {"enum": list(FORMATS), "default": FORMATS[0]},
}
_CREATE_BODY: Final = _object({"folder": _FOLDER} | _CONTENT, ("format",))
_REVISE_BODY: Final = _object(_CONTENT, ("format",))
_REVISE_ITEM: Final = _object(
    {"note_id": _NOTE_ID, "if_match": _text(f"^{_TAG_PATTERN}$")} | _CONTENT, ("format",)
)
_NOTE_REF: Final[Schema] = {
    "id": {"type": "string", "format": "uuid"},
    "folder": _STRING,
    "version": {"type": "integer", "minimum": 1},
    "etag": _STRING,
    "location": _STRING,
    "created_at": _TIME,
}
_NOTE: Final = _object(
    _NOTE_REF | _CONTENT | {"args_hash": _HASH, "principal": _STRING, "operation_id": _KEY},
)
_RECEIPT: Final = _object({"operation_id": _KEY, "args_hash": _HASH, "note": _object(_NOTE_REF)})
_STATE: Final = _object(
    {
        "operation_id": _KEY,
        "state": {"enum": ["completed", "sealed", "in_progress", "not_found"]},
        "as_of": _TIME,
        "args_hash": _maybe(_HASH),
        "note": _maybe(_object(_NOTE_REF)),
    }
)
PROBLEM: Final = _object(
    {
        "type": _STRING,
        "title": _STRING,
        "status": {"type": "integer"},
        "detail": _STRING,
        "code": {"enum": list(PROBLEMS)},
        "attempt": {"enum": ["executed", "replayed", "not_executed", "unknown"]},
        "operation_state": {"enum": ["completed", "sealed", "in_progress", "not_found", "unknown"]},
        "retry": _object(
            {"same_key": {"type": "boolean"}, "new_key": {"type": "boolean"}, "after_s": _maybe(_COUNT)}
        ),
        "errors": _list(_object({"path": _STRING, "message": _STRING})),
        "permitted_folders": _list(_STRING),
    },
    ("permitted_folders",),
)
_ITEM_PROBLEM: Final = _object(
    {"operation_id": _maybe(_STRING), "status": {"type": "integer"}, "problem": PROBLEM}
)
_BATCH_ITEM: Final = _object(
    {
        "operation_id": _KEY,
        "call_id": _maybe(_text("^[ -~]{1,128}$")),
        "deadline": _TIME,
        "on_behalf_of": _maybe(_PRINCIPAL),
        "kind": {"enum": list(KINDS)},
        "arguments": {"anyOf": [_CREATE_BODY, _REVISE_ITEM]},
    },
    ("call_id", "on_behalf_of"),
)
_BATCH_ANSWER: Final[Schema] = {
    "anyOf": [
        _object(
            {
                "operation_id": _KEY,
                "status": {"enum": [200, 201]},
                "replayed": {"type": "boolean"},
                "receipt": _RECEIPT,
            }
        ),
        _ITEM_PROBLEM,
    ]
}
_SEAL_ITEM: Final = _object(
    {"operation_id": _KEY, "deadline": _TIME, "on_behalf_of": _maybe(_PRINCIPAL), "args_hash": _maybe(_HASH)},
    ("on_behalf_of", "args_hash"),
)
_STATUS_ITEM: Final = _object({"operation_id": _KEY, "on_behalf_of": _maybe(_PRINCIPAL)}, ("on_behalf_of",))
_ASKED: Final[Schema] = {"anyOf": [_STATE, _ITEM_PROBLEM]}
_CAPABILITIES: Final = _object(
    {
        "receiver": {"type": "string", "format": "uuid"},
        "class": {"const": "A"},
        "batch": _object({"max_items": _COUNT, "max_bytes": _COUNT}),
        "admission_window_s": _COUNT,
        "request_limit_s": {"type": "number"},
        "tombstone_retention_s": _COUNT,
        "limits": _object({"title": _COUNT, "text_bytes": _COUNT, "depth": _COUNT}),
        "server_time": _TIME,
        "version": _STRING,
    }
)


def _parameter(place: str, name: str, schema: Schema, description: str, *, required: bool = True) -> Schema:
    return {"name": name, "in": place, "required": required, "schema": schema, "description": description}


# Names of path parameters; for the document only, as the endpoints check them in their own order.
KeyInPath = Annotated[str, Path(json_schema_extra=_KEY)]
NoteIdInPath = Annotated[str, Path(json_schema_extra=_NOTE_ID)]

_ACTING: Final = _parameter(
    "header", "On-Behalf-Of", _PRINCIPAL, "tenant/principal; required from a delegate", required=False
)
_CALL: Final = _parameter(
    "header",
    "Call-Id",
    _STRING,
    "the sender's id of this request; ignored unless it is 1 to 128 printable ASCII characters",
    required=False,
)
_DEADLINE: Final = _parameter("header", "Operation-Deadline", _TIME, "RFC 3339; nothing is executed after it")
_IDEMPOTENCY_KEY: Final = _parameter(
    "header",
    "Idempotency-Key",
    _text(f'^({_KEY_PATTERN}|"{_KEY_PATTERN}")$'),
    "exactly one, a bare token or an RFC 8941 string",
)
_IF_MATCH: Final = _parameter(
    "header", "If-Match", _text(f'^"{_TAG_PATTERN}"$'), "the ETag of the version that was read"
)
_OPERATION: Final = _parameter("query", "operation", _KEY, "the key of the operation")
_VERSION: Final = _parameter(
    "query",
    "version",
    {"type": "integer", "minimum": 1, "maximum": 999_999_999},
    "a version; the latest without it",
    required=False,
)
_WRITING: Final = [_IDEMPOTENCY_KEY, _DEADLINE, _ACTING, _CALL]
_ALWAYS: Final[tuple[Code, ...]] = ("unauthenticated", "internal", "busy")
_BODY: Final[tuple[Code, ...]] = ("invalid_argument", "too_large", "unsupported_type", *_ALWAYS)
_WRITE: Final[tuple[Code, ...]] = (
    "idempotency_key_missing", "idempotency_key_invalid", "deadline_missing", "deadline_invalid",
    "operation_in_progress", "operation_sealed", "operation_expired", "argument_conflict", "rate_limited", *_BODY,
)  # fmt: skip


def _route(
    schema: Schema | None,
    codes: tuple[Code, ...] = (),
    *,
    status: int = 200,
    body: Schema | None = None,
    parameters: list[Schema] | None = None,
) -> dict[str, Any]:
    """What FastAPI's route decorators take: the success, and every problem by its status."""
    media = {"application/json": {"schema": schema}} if schema else {"text/plain": {"schema": _STRING}}
    responses: dict[int | str, Schema] = {status: {"description": "Success", "content": media}}
    for code in codes:
        found = responses.setdefault(
            PROBLEMS[code].status,
            {"description": "", "content": {"application/problem+json": {"schema": PROBLEM}}},
        )
        found["description"] = ", ".join(filter(None, [found["description"], code]))
    extra: Schema = {"parameters": parameters or []}
    if body:
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    if "unauthenticated" in codes:
        extra["security"] = [{"bearer": []}]
    return {
        "response_model": None,
        "response_class": Response,
        "status_code": status,
        "responses": responses,
        "openapi_extra": extra,
    }


CREATE: Final = _route(
    _RECEIPT, (*_WRITE, "folder_not_writable"), status=201, body=_CREATE_BODY, parameters=_WRITING
)
REVISE: Final = _route(
    _RECEIPT,
    (*_WRITE, "note_not_found", "precondition_failed", "precondition_required"),
    body=_REVISE_BODY,
    parameters=[*_WRITING, _IF_MATCH],
)
BATCH: Final = _route(
    _object({"items": _list(_BATCH_ANSWER)}),
    (*_BODY, "rate_limited"),
    body=_object({"items": _list(_BATCH_ITEM, 500)}),
    parameters=[_ACTING, _CALL],
)
LOOK_UP: Final = _route(
    _object({"notes": _list(_object(_NOTE_REF))}),
    ("idempotency_key_missing", "idempotency_key_invalid", "invalid_argument", *_ALWAYS),
    parameters=[_OPERATION, _ACTING, _CALL],
)
READ: Final = _route(
    _NOTE,
    ("invalid_argument", "note_not_found", *_ALWAYS),
    parameters=[_VERSION, _ACTING, _CALL],
)
STATUS: Final = _route(
    _STATE, ("idempotency_key_invalid", "invalid_argument", *_ALWAYS), parameters=[_ACTING, _CALL]
)
STATUS_MANY: Final = _route(
    _object({"as_of": _TIME, "items": _list(_ASKED)}),
    _BODY,
    body=_object({"operations": _list(_STATUS_ITEM, 500)}),
    parameters=[_ACTING, _CALL],
)
SEAL: Final = _route(
    _STATE,
    (
        "idempotency_key_invalid", "deadline_missing", "deadline_invalid", "invalid_argument",
        "operation_in_progress", "rate_limited", *_ALWAYS,
    ),
    parameters=[_DEADLINE, _ACTING, _CALL],
)  # fmt: skip
SEAL_MANY: Final = _route(
    _object({"items": _list(_ASKED)}),
    (*_BODY, "rate_limited"),
    body=_object({"items": _list(_SEAL_ITEM, 500)}),
    parameters=[_ACTING, _CALL],
)
CAPABILITIES: Final = _route(_CAPABILITIES, ("invalid_argument", *_ALWAYS))
FOLDERS: Final = _route(
    _object({"folders": _list(_object({"path": _STRING, "granted_at": _TIME}))}),
    ("invalid_argument", *_ALWAYS),
    parameters=[_ACTING, _CALL],
)
HEALTH: Final = _route(_object({"status": {"const": "alive"}}))
READY: Final = _route(_object({"status": {"const": "ready"}}), ("busy",))
METRICS: Final = _route(None)
_DOCUMENT: Final = _route({"type": "object"})


def serve(app: FastAPI) -> None:
    """Adds the endpoint of the document itself, which lists it too."""

    async def document(request: Request) -> Response:
        """This document."""
        found = request.app.openapi()
        found["components"] = {"securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}}
        for operations in found["paths"].values():
            for operation in operations.values():
                _drop_foreign(operation["responses"])
        return answers.document(found)

    app.add_api_route("/openapi.json", document, methods=["GET"], tags=["receiver"], **_DOCUMENT)


def _drop_foreign(responses: Schema) -> None:
    """FastAPI lists a 422 of its own wherever a path has a parameter; nothing here answers with it."""
    if "application/json" in responses.get("422", {}).get("content", {}):
        del responses["422"]
